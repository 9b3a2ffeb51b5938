"""Minimal pairs: costs are those of a plain loop over transformers' models, and preferences are counted."""

from pathlib import Path

import pytest
import torch
import transformers

from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import MinimalRecord, Place
from regard.errors import DataError, InputError
from regard.model.network import Network
from regard.tasks import TASKS
from regard.tasks.inference import answer_records, network_runner, score_records
from regard.tasks.language.minimal_pairs import MinimalPairs
from regard.text.learn import train_tokenizer_from_texts

TEXTS = ["the cat sleeps on the mat", "the cats sleep", "a dog", "the mat"]
PAIRS = [MinimalRecord(*TEXTS[:2]), MinimalRecord(*TEXTS[2:])]
CPU = torch.device("cpu")


@pytest.fixture
def masked(tmp_path: Path) -> tuple[Preprocessing, transformers.BertForMaskedLM, Network]:
    words = train_tokenizer_from_texts(TEXTS * 20, size=40)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=words.size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4)
    model.save_pretrained(tmp_path)
    checkpoint = read_folder(tmp_path)
    return Preprocessing(words, checkpoint.config), model, checkpoint.network


def costs(
    network: Network, preprocessing: Preprocessing, pairs: list[MinimalRecord], tokens: int = 8192
) -> list[float]:
    task = MinimalPairs.of(network)
    assert task is not None
    result = answer_records(task, network_runner(network, task), pairs, preprocessing, device=CPU, batch_tokens=tokens)
    answers = [answer.json() for _, answer in result]
    assert all(one["windows"] == 1 for one in answers)
    return [one[name] for one in answers for name in ("cost_good", "cost_bad")]


def test_pseudo_likelihoods_hide_one_token_at_a_time(
    masked: tuple[Preprocessing, transformers.BertForMaskedLM, Network],
) -> None:
    preprocessing, theirs, network = masked
    expected = []
    for text in TEXTS:
        ids = torch.tensor(preprocessing.tokenizer.encode(text).ids)
        total = 0.0
        for place in range(1, len(ids) - 1):
            hidden = ids.clone()
            hidden[place] = preprocessing.tokenizer.mask or 0
            with torch.no_grad():
                total -= float(theirs(hidden[None]).logits[0, place].log_softmax(0)[ids[place]])
        expected.append(total)
    for tokens in (1, 30, 8192):
        assert costs(network, preprocessing, PAIRS, tokens) == pytest.approx(expected, abs=1e-4)


def test_likelihoods_of_a_causal_model(tmp_path: Path) -> None:
    words = train_tokenizer_from_texts(TEXTS * 20, kind="bpe", size=262)
    assert words.bos is not None
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=words.size, n_embd=32, n_layer=2, n_head=2, n_positions=64)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path)
    checkpoint = read_folder(tmp_path)
    expected = []
    for text in TEXTS:
        ids = torch.tensor([[words.bos, *words.encode(text).ids]])
        with torch.no_grad():
            expected.append(float(theirs(ids, labels=ids).loss) * (ids.shape[1] - 1))
    assert costs(checkpoint.network, Preprocessing(words, checkpoint.config), PAIRS) == pytest.approx(
        expected, abs=1e-4
    )


def test_a_frame_that_a_causal_model_has_is_given_but_not_scored() -> None:
    """Only the words of a sentence have a cost, whatever the tokenizer puts before and after it."""
    words = train_tokenizer_from_texts(TEXTS * 20, size=40)
    (before,), (after,) = words.surrounding_ids
    network = from_preset("tiny-gpt2", vocabulary=words.size).network.eval()
    preprocessing = Preprocessing(words, from_preset("tiny-gpt2", vocabulary=words.size).config)
    examples = MinimalPairs(hides=False).examples(PAIRS[:1], preprocessing, labeled=True)
    for row, text in enumerate(TEXTS[:2]):
        ids = words.encode(text, special=False).ids
        taken = examples.take([row])
        assert taken.tokens.ids.tolist() == [before, *ids, after]
        assert taken["word"].tolist() == [*ids, -100, -100]
    assert all(cost > 0 for cost in costs(network, preprocessing, PAIRS))


def test_pairs_are_counted_over_all_and_by_kind(
    masked: tuple[Preprocessing, transformers.BertForMaskedLM, Network],
) -> None:
    preprocessing, _, network = masked
    good, bad = costs(network, preprocessing, PAIRS[:1])
    right, wrong = (TEXTS[:2], TEXTS[1::-1]) if good < bad else (TEXTS[1::-1], TEXTS[:2])
    sentences = [(right, "number"), (right, "number"), (wrong, "order")]
    pairs = [MinimalRecord(one, other, kind) for (one, other), kind in sentences]
    task = MinimalPairs(hides=True)
    result = score_records(task, network_runner(network, task), pairs, preprocessing, device=CPU)
    assert {name: one.value for name, one in result.scores.items()} == pytest.approx(
        {"accuracy": 2 / 3, "accuracy number": 1.0, "accuracy order": 0.0}
    )
    assert (result.rows, result.main) == (3, "accuracy")
    assert result.scores["accuracy"].low < 2 / 3 < result.scores["accuracy"].high
    assert set(score_records(task, network_runner(network, task), pairs[:2], preprocessing, device=CPU).scores) == {
        "accuracy"
    }


def test_pairs_that_cannot_be_scored_are_refused() -> None:
    words, place = train_tokenizer_from_texts(TEXTS * 20, size=40), Place("pairs.jsonl", line=4)
    assert MinimalPairs.of(from_preset("tiny-bert", heads={}).network) is None
    assert MinimalPairs.of(from_preset("tiny-transformer").network) is None
    known = from_preset("tiny-bert", heads={"masked": 0})
    with pytest.raises(DataError, match=r"pairs\.jsonl line 4: a sentence here has \d+ tokens"):
        costs(known.network, Preprocessing(words, known.config, window=4), [MinimalRecord(TEXTS[0], "a", place=place)])
    with pytest.raises(InputError, match="nothing is trained on them"):
        MinimalPairs.from_records([])
    assert MinimalPairs.name not in TASKS
    assert MinimalPairs.from_settings(MinimalPairs(hides=True).settings()) == MinimalPairs(hides=True)
    bare = train_tokenizer_from_texts(TEXTS * 20, kind="bpe", size=262)
    with pytest.raises(InputError, match=r"\[MASK\]"):
        costs(known.network, Preprocessing(bare, known.config), PAIRS)
