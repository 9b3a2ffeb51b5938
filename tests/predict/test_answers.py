"""Answers of models trained here and elsewhere: the same alone and in company, as transformers gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import regard
from regard.data.records import ClassifyRecord, PairRecord
from regard.errors import FolderError, InputError
from regard.model.linear import can_pack
from regard.progress import Progress
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

TEXTS = ["warm and lovely", "a dull film", "x" * 40 + " the worst of the year", "fun"]
SHAPE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def words(reviews: Callable[..., list[tuple[str, str]]]) -> Tokenizer:
    return train_tokenizer_from_texts((text for text, _ in reviews(60)), kind="wordpiece", size=90)


Foreign = Callable[..., tuple[Path, Any]]


@pytest.fixture
def foreign(tmp_path: Path, words: Tokenizer) -> Foreign:
    """A folder that transformers wrote, and the model it wrote it from."""

    def make(kind: str = "BertForSequenceClassification", **settings: Any) -> tuple[Path, Any]:
        torch.manual_seed(0)
        config = transformers.BertConfig(vocab_size=words.size, **SHAPE, **settings)
        model = getattr(transformers, kind)(config).eval()
        model.save_pretrained(tmp_path / "foreign")
        words.save(tmp_path / "foreign")
        return tmp_path / "foreign", model

    return make


def logits(model: Any, words: Tokenizer, text: str, pair: str | None = None) -> Any:
    found = words.encode(text, pair)
    with torch.inference_mode():
        return model(
            input_ids=torch.tensor([found.ids]), token_type_ids=torch.tensor([found.segments], dtype=torch.long)
        )


def test_an_answer_is_the_same_alone_and_in_company(trained: Path) -> None:
    model = regard.load(trained, device="cpu")
    together = model.predict(TEXTS)
    for text, answer in zip(TEXTS, together, strict=True):
        alone = model.predict([text])[0].json()
        assert alone["label"] == answer.json()["label"]
        assert alone["scores"] == pytest.approx(answer.json()["scores"], abs=1e-5)
    assert [answer.json()["label"] for answer in model.predict(TEXTS, batch_tokens=8)] == [
        answer.json()["label"] for answer in together
    ]


@pytest.mark.skipif(not can_pack(), reason="torch has no oneDNN with Arm's kernels here")
@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_an_answer_has_the_same_bits_alone_and_in_company(foreign: Foreign, kind: str) -> None:
    folder, _ = foreign(kind)
    model = regard.load(folder, device="cpu")
    texts = [*TEXTS, "warm", "a", "fun " * 100, "dull"] * 3
    alone = [model.predict([text])[0].json() for text in texts]
    assert [answer.json() for answer in model.predict(texts)] == alone
    assert [answer.json() for answer in model.predict(texts, batch_tokens=64)] == alone


def test_texts_dicts_and_records_are_the_same(trained: Path) -> None:
    model = regard.load(trained, device="cpu")
    kinds: list[Any] = [TEXTS[0], {"text": TEXTS[0]}, {"review": TEXTS[0], "label": "?"}, ClassifyRecord(TEXTS[0])]
    assert len({answer.json()["score"] for answer in model.predict(kinds)}) == 1
    assert model.predict([]) == []


def test_long_texts_are_read_in_windows(trained: Path) -> None:
    answer = regard.load(trained, device="cpu").predict(["warm and lovely " * 400])[0]
    assert answer.windows > 1
    assert not answer.truncated


def test_progress_counts(trained: Path) -> None:
    reports: list[Progress] = []
    regard.load(trained, device="cpu").predict(TEXTS, progress=reports.append)
    assert reports == [Progress("answers", done, 4) for done in (1, 2, 3, 4)]


def test_a_saved_copy_keeps_its_task(trained: Path, tmp_path: Path) -> None:
    model = regard.load(trained, device="cpu")
    copy = regard.load(model.save(tmp_path / "copy"), device="cpu")
    assert copy.task == "classify"
    assert copy.predict(TEXTS) == model.predict(TEXTS)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("a text", "one str was given where a list was expected"),
        (7, "a list was expected"),
        ([7], r"input 0 is 7 \(int\); this model needs a text"),
        ([None, "fine"], r"input 0 is None \(NoneType\); this model needs a text"),
        (["fine", " "], "input 1 holds an empty text"),
        ([{"tweeet": "a"}], 'input 0 has tweeet; expected "text" among them'),
        ([("a", "b")], "this model needs a text"),
        ([PairRecord("a", "b")], "input 0 is a PairRecord; this model needs a text"),
    ],
)
def test_what_cannot_be_answered(trained: Path, given: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        regard.load(trained, device="cpu").predict(given)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"task_settings": None}, "has no task_settings"),
        ({"task_settings": {"kind": "multiple"}}, "task_settings cannot be used"),
        (
            {"task_settings": {"labels": ["a", "b", "c"]}},
            "run.json and config.json contradict each other",
        ),
        ({"task": "masked", "task_settings": {}}, "task_settings cannot be used"),
    ],
)
def test_a_run_that_does_not_fit(trained: Path, tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    folder = regard.load(trained).save(tmp_path / "copy")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | changed))
    with pytest.raises(FolderError, match=says):
        regard.load(folder).predict(TEXTS)


# folders from elsewhere


def test_labels_and_scores_are_those_of_transformers(foreign: Foreign, words: Tokenizer) -> None:
    folder, model = foreign(id2label={0: "cold", 1: "mild", 2: "warm"}, label2id={"cold": 0, "mild": 1, "warm": 2})
    for text, answer in zip(TEXTS, regard.load(folder, device="cpu").predict(TEXTS), strict=True):
        expected = logits(model, words, text).logits[0].softmax(0)
        said = answer.json()
        assert said["label"] == ["cold", "mild", "warm"][int(expected.argmax())]
        found = [said["scores"][name] for name in ("cold", "mild", "warm")]
        assert found == pytest.approx(expected.tolist(), abs=1e-5)


def test_several_labels_and_numbers_by_problem_type(foreign: Foreign, words: Tokenizer) -> None:
    folder, model = foreign(num_labels=2, problem_type="multi_label_classification")
    said = regard.load(folder, device="cpu").predict(TEXTS[:1])[0].json()
    expected = logits(model, words, TEXTS[0]).logits[0].sigmoid().tolist()
    assert said["scores"] == pytest.approx({"LABEL_0": expected[0], "LABEL_1": expected[1]}, abs=1e-5)
    folder, model = foreign(num_labels=1)
    value = regard.load(folder, device="cpu").predict(TEXTS[:1])[0].json()["value"]
    assert value == pytest.approx(float(logits(model, words, TEXTS[0]).logits[0, 0]), abs=1e-5)


def test_pairs_by_what_is_given(foreign: Foreign, words: Tokenizer) -> None:
    folder, model = foreign(num_labels=2)
    said = regard.load(folder, device="cpu").predict([("warm and lovely", "a dull film")])[0].json()
    expected = logits(model, words, "warm and lovely", "a dull film").logits[0].softmax(0).tolist()
    assert said["scores"] == pytest.approx({"LABEL_0": expected[0], "LABEL_1": expected[1]}, abs=1e-5)


def test_tags_and_stretches_by_their_heads(foreign: Foreign) -> None:
    folder, _ = foreign("BertForTokenClassification", id2label={0: "O", 1: "B-PER", 2: "I-PER"})
    for given in ("Anna went home", ["Anna", "went", "home"], {"text": "Anna went home"}):
        (answer,) = regard.load(folder, device="cpu").predict([given])
        for entity in answer.json()["entities"]:
            assert "Anna went home"[entity["start"] : entity["end"]] == entity["text"]
    folder, _ = foreign("BertForQuestionAnswering")
    model = regard.load(folder, device="cpu")
    context = "Anna went home. It was late."
    (said,) = model.predict([("Who went home?", context)])
    (same,) = model.predict([{"question": "Who went home?", "context": context}])
    assert said.json() == same.json()
    assert context[said.json()["start"] : said.json()["end"]] == said.json()["answer"]
    with pytest.raises(InputError, match=r"this model needs \(question, context\)"):
        model.predict(["Who went home?"])


def test_two_classes_of_one_name(foreign: Foreign) -> None:
    folder, _ = foreign(num_labels=3, id2label={0: "good", 1: "other", 2: "other"})
    model = regard.load(folder, device="cpu")
    with pytest.raises(FolderError, match='two classes of id2label are called "other"'):
        model.predict(TEXTS)
    assert len(model.embed(TEXTS)) == len(TEXTS)


def test_a_problem_that_is_not_known(foreign: Foreign) -> None:
    folder, _ = foreign(num_labels=2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "problem_type": "guessing"}))
    with pytest.raises(FolderError, match='problem_type is "guessing", expected one of single_label'):
        regard.load(folder, device="cpu").predict(TEXTS)


def test_the_tokenizer_of_another_model(trained: Path, tmp_path: Path) -> None:
    folder = regard.load(trained).save(tmp_path / "copy")
    train_tokenizer_from_texts(
        [f"{one}{two} word{one}{two}" for one in "abcdefgh" for two in "ijklmnop"], kind="bpe", size=265
    ).save(folder)
    with pytest.raises(InputError, match="belongs to another model"):
        regard.load(folder, device="cpu").predict(["zword zap"])


def test_words_of_another_model_are_neither_filled_in_nor_follow(foreign: Foreign, words: Tokenizer) -> None:
    folder, _ = foreign("BertForPreTraining")
    more = [f"{one}{two}{three}" for one in "bcdfghkl" for two in "mnpqrstv" for three in "aeo"]
    train_tokenizer_from_texts([" ".join(more)] * 2, kind="wordpiece", size=words.size + 60, lowercase=True).save(
        folder
    )
    model = regard.load(folder, device="cpu")
    for call in (lambda: model.fill("[MASK] " + " ".join(more)), lambda: model.next_sentence(" ".join(more), "a")):
        with pytest.raises(InputError, match="belongs to another model"):
            call()
    assert [len(candidates) for candidates in model.fill("[MASK]", top=words.size + 60)] == [words.size]
    with pytest.raises(InputError, match="has no token this tokenizer can read"):
        model.next_sentence("", " ")


# words


def test_filled_words_are_those_of_transformers(foreign: Foreign, words: Tokenizer) -> None:
    folder, theirs = foreign("BertForPreTraining")
    model = regard.load(folder, device="cpu")
    text = "a [MASK] film of the [MASK]"
    expected = logits(theirs, words, text).prediction_logits[0].softmax(-1)
    places = [place for place, token in enumerate(words.encode(text).ids) if token == words.mask]
    found = model.fill(text, top=4)
    assert len(found) == 2
    for place, best in zip(places, found, strict=True):
        assert [one.score for one in best] == pytest.approx(expected[place].topk(4).values.tolist(), abs=1e-5)
    assert [one.word for one in found[0]] == [
        words.backend.id_to_token(token) for token in expected[places[0]].topk(4).indices.tolist()
    ]
    (alone,) = model.fill("a <mask> film")
    assert len(alone) == 5
    assert alone[0].text.endswith(" film")


def test_a_mask_far_down_a_long_text(foreign: Foreign) -> None:
    folder, _ = foreign("BertForPreTraining")
    model = regard.load(folder, device="cpu")
    (filled,) = model.fill("warm and lovely " * 60 + "[MASK] film")
    assert len(filled) == 5


def test_what_follows_is_as_in_transformers(foreign: Foreign, words: Tokenizer) -> None:
    folder, theirs = foreign("BertForPreTraining")
    model = regard.load(folder, device="cpu")
    expected = logits(theirs, words, "a dull film", "the worst").seq_relationship_logits[0].softmax(0)[0]
    assert model.next_sentence("a dull film", "the worst") == pytest.approx(float(expected), abs=1e-5)
    with pytest.raises(InputError, match="the maximum of this network is 64"):
        model.next_sentence("a dull film " * 40, "the worst")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda model: model.fill("no mask"), r"there is no \[MASK\] in the text"),
        (lambda model: model.fill("a [MASK]", top=0), "top is 0"),
        (lambda model: model.fill(["a [MASK]"]), "one text was expected"),
        (lambda model: model.predict(["a"]), r"model for masked, so it has no answers.*model.fill"),
    ],
)
def test_what_cannot_be_filled(foreign: Foreign, call: Any, says: str) -> None:
    folder, _ = foreign("BertForMaskedLM")
    with pytest.raises(InputError, match=says):
        call(regard.load(folder, device="cpu"))


def test_a_head_that_is_not_there(foreign: Foreign) -> None:
    folder, _ = foreign("BertForMaskedLM")
    with pytest.raises(InputError, match=r"no head for next sentences.*What it can do: model.fill"):
        regard.load(folder, device="cpu").next_sentence("a", "b")
