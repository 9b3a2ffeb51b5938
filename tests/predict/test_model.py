"""Texts and ids to vectors and logits: batched as single, as the reference, and clear where it cannot be."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers

import regard
from regard.checkpoint.check_tensors import saved_tensors
from regard.checkpoint.families import PRESETS, preset
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.checkpoint.source import minilm_folder
from regard.checkpoint.write_folder import write_folder
from regard.config import ModelConfig
from regard.errors import FolderError, InputError
from regard.model import hooks as taps
from regard.predict import Model
from regard.progress import Progress
from regard.text.tokenizer import Tokenizer

TINY = [name for name in PRESETS if name.startswith("tiny-")]
TEXTS = [
    "A man is eating food.",
    "hi",
    "The quick brown fox jumps over the lazy dog, again and again, until the evening comes and everybody goes home.",
    "naïve café 東京 😀",
    "A man eats something.",
]
LONG = " ".join(f"word{number} and then" for number in range(150))


def random(name: str, heads: dict[str, int] | None = None, *, longest: int | None = None) -> Checkpoint:
    """A tiny network whose weights are spread widely enough that every part matters."""
    chosen = preset(name)
    config = chosen.config
    if longest is not None:
        assert isinstance(config, ModelConfig)
        config = dataclasses.replace(config, positions=dataclasses.replace(config.positions, max_tokens=longest))
    network = build_on_meta(config, chosen.heads if heads is None else heads)
    generator = torch.Generator().manual_seed(3)
    drawn = {
        path: torch.randn(tensor.shape, generator=generator) * 0.3 for path, tensor in saved_tensors(network).items()
    }
    set_tensors(network, drawn)
    return Checkpoint(chosen.family, config, network.eval())


def words(*, special: bool) -> Tokenizer:
    """A tokenizer of 100 whole words, w0 to w97, with or without special tokens around a text."""
    vocabulary = {"[CLS]": 0, "[SEP]": 1} | {f"w{number}": number + 2 for number in range(98)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if special:
        backend.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
        )
    return Tokenizer(backend)


def said(count: int, *, start: int = 0) -> str:
    return " ".join(f"w{(start + 7 * number) % 98}" for number in range(count))


@pytest.fixture(scope="module")
def minilm() -> Model:
    return regard.load("minilm")


@pytest.fixture(scope="module")
def reference() -> Any:
    return transformers.AutoModel.from_pretrained(minilm_folder(), attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def theirs() -> Any:
    return transformers.AutoTokenizer.from_pretrained(minilm_folder())


def rows(lengths: list[int], seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(100, (length,), generator=generator).tolist() for length in lengths]


# outputs


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("batch_tokens", [1, 30, 10_000])
def test_batched_is_single_in_the_order_given(name: str, batch_tokens: int) -> None:
    model = Model(random(name))
    ids, targets = rows([3, 20, 1, 9, 9, 1, 14]), rows([2, 5, 1, 7, 1, 3, 4], 1)
    both = model.config.kind == "encoder-decoder"
    found = model.outputs(ids, decoder_ids=targets if both else None, batch_tokens=batch_tokens)
    assert len(found) == len(ids)
    for sequence, target, output in zip(ids, targets, found, strict=True):
        (single,) = model.outputs([sequence], decoder_ids=[target] if both else None)
        for field in dataclasses.fields(single):
            one, other = getattr(single, field.name), getattr(output, field.name)
            assert (one is None) == (other is None)
            assert one is None or (one.shape == other.shape and torch.allclose(one, other, atol=1e-5)), field.name


@pytest.mark.parametrize(
    ("name", "heads", "shapes"),
    [
        ("tiny-bert", {}, {"hidden": (5, 32)}),
        ("tiny-bert", {"pooled": 0}, {"hidden": (5, 32), "pooled": (32,)}),
        ("tiny-bert", {"masked": 0}, {"hidden": (5, 32), "logits": (5, 100)}),
        (
            "tiny-bert",
            {"masked": 0, "next": 0},
            {"hidden": (5, 32), "logits": (5, 100), "pooled": (32,), "next_sentence": (2,)},
        ),
        ("tiny-bert", {"next": 0}, {"hidden": (5, 32), "pooled": (32,), "next_sentence": (2,)}),
        ("tiny-bert", {"sequence": 3}, {"hidden": (5, 32), "logits": (3,), "pooled": (32,)}),
        ("tiny-bert", {"token": 4}, {"hidden": (5, 32), "logits": (5, 4)}),
        ("tiny-bert", {"span": 0}, {"hidden": (5, 32), "logits": (5, 2)}),
        ("tiny-electra", {"replaced": 0}, {"hidden": (5, 32), "logits": (5, 1)}),
        ("tiny-gpt2", {"language": 0}, {"hidden": (5, 32), "logits": (5, 100)}),
        ("tiny-t5", {"language": 0}, {"hidden": (3, 32), "logits": (3, 100), "memory": (5, 32)}),
    ],
)
def test_shapes_by_head(name: str, heads: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> None:
    model = Model(random(name, heads))
    targets = [[1, 2, 3], [4]] if name == "tiny-t5" else None
    output, other = model.outputs([[5, 6, 7, 8, 9], [3]], decoder_ids=targets)
    found = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    assert {name: tuple(value.shape) for name, value in found.items() if value is not None} == shapes
    assert other.hidden.shape == (1, 32)


def test_one_token_each_is_not_taken_for_one_text_of_tokens() -> None:
    """As many logits of texts as there are tokens, and still one row of them a text."""
    outputs = Model(random("tiny-bert", {"sequence": 3})).outputs([[5], [6], [7]])
    assert [tuple(output.logits.shape) for output in outputs] == [(3,)] * 3


def test_ids_may_be_arrays_and_tensors() -> None:
    model = Model(random("tiny-bert"))
    expected = [output.hidden for output in model.outputs([[5, 6], [7, 8]])]
    for ids in (np.array([[5, 6], [7, 8]]), torch.tensor([[5, 6], [7, 8]]), ([np.int64(5), 6], torch.tensor([7, 8]))):
        found = model.outputs(ids)  # type: ignore[arg-type]
        assert all(torch.equal(one.hidden, other) for one, other in zip(found, expected, strict=True))


def test_segments_are_heeded() -> None:
    model = Model(random("tiny-bert"))
    plain, zeros, ones = (
        model.outputs([[5, 6], [7]], segments=kinds) for kinds in (None, [[0, 0], [0]], [[0, 1], [1]])
    )
    assert torch.equal(plain[0].hidden, zeros[0].hidden)
    assert not torch.allclose(plain[0].hidden, ones[0].hidden, atol=1e-3)


BERT, T5, ROBERTA, GPT2 = "tiny-bert", "tiny-t5", "tiny-roberta", "tiny-gpt2"


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        (BERT, {"ids": []}, "ids is an empty list; give at least one sequence."),
        (BERT, {"ids": [[1], []]}, "ids: sequence 1 is empty; give it at least one id."),
        (
            BERT,
            {"ids": [[1], [5, 100, 7]]},
            "sequence 1, place 1: id 100 is outside the vocabulary, whose ids are 0 to 99",
        ),
        (BERT, {"ids": [[1, 2, -3]]}, "sequence 0, place 2: id -3 is outside the vocabulary"),
        (BERT, {"ids": [[1], [1] * 513]}, "sequence 1 has 513 tokens; the limit of this network is 512. Split it into"),
        (ROBERTA, {"ids": [[1] * 129]}, "sequence 0 has 129 tokens; the limit of this network is 128."),
        (BERT, {"ids": [1, 2]}, "ids must be a list of sequences, such as [[5, 6], [7]], not [1, 2]."),
        (BERT, {"ids": np.array([1, 2])}, "ids must be a list of sequences"),
        (BERT, {"ids": 5}, "ids must be a list of sequences"),
        (BERT, {"ids": [[1.5]]}, "ids: sequence 0 holds something else than whole numbers"),
        (BERT, {"ids": ["ab"]}, "ids: sequence 0 holds something else than whole numbers"),
        (BERT, {"ids": [[1, None]]}, "ids: sequence 0 holds something else than whole numbers"),
        (BERT, {"ids": [[1]], "decoder_ids": [[1]]}, "a model of kind encoder takes no decoder_ids."),
        (GPT2, {"ids": [[1]], "decoder_ids": [[1]]}, "a model of kind decoder takes no decoder_ids."),
        (T5, {"ids": [[1]]}, "a model of kind encoder-decoder needs decoder_ids: the target of each sequence so far"),
        (T5, {"ids": [[1]], "decoder_ids": []}, "decoder_ids is an empty list"),
        (T5, {"ids": [[1]], "decoder_ids": [[1], [2]]}, "1 sequence of ids but 2 of decoder_ids; give one each."),
        (T5, {"ids": [[1], [2]], "decoder_ids": [[1], [100]]}, "decoder_ids: sequence 1, place 0: id 100 is outside"),
        ("tiny-bart", {"ids": [[1]], "decoder_ids": [[1] * 129]}, "decoder_ids: sequence 0 has 129 tokens"),
        (BERT, {"ids": [[1]], "segments": []}, "1 sequence of ids but 0 of segments; give one for each."),
        (BERT, {"ids": [[1, 2], [3]], "segments": [[0, 1], []]}, "sequence 1 has 1 ids but 0 segments"),
        (
            BERT,
            {"ids": [[1], [3, 4]], "segments": [[0], [0, 2]]},
            "segments: sequence 1 holds a number outside 0 to 1.",
        ),
        (ROBERTA, {"ids": [[1]], "segments": [[0, 0]]}, "sequence 0 has 1 ids but 2 segments; give one a token."),
        (GPT2, {"ids": [[1]], "segments": [[0]]}, "segments were given, but this network has none; leave them out."),
        (BERT, {"ids": [[1]], "batch_tokens": 0}, "batch_tokens is 0, expected at least 1 token."),
    ],
)
def test_ids_that_cannot_be_read_are_told(name: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        Model(random(name)).outputs(**given)
    assert says in str(caught.value)


# embed


@pytest.mark.parametrize("batch_tokens", [1, 40, 10_000])
def test_minilm_is_the_reference_with_mean_pooling(
    minilm: Model, reference: Any, theirs: Any, batch_tokens: int
) -> None:
    batch = theirs(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states, mask = reference(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
    expected = ((states * mask).sum(1) / mask.sum(1)).numpy()
    found = minilm.embed(TEXTS, batch_tokens=batch_tokens)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5
    scaled = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(minilm.embed(TEXTS, normalize=True, batch_tokens=batch_tokens) - scaled).max() < 1e-5


def test_attention_of_minilm_is_that_of_the_reference(minilm: Model, reference: Any, theirs: Any) -> None:
    with torch.no_grad():
        expected = reference(**theirs(TEXTS[2], return_tensors="pt"), output_attentions=True).attentions
    found = minilm.attention(TEXTS[2])
    assert sorted(found) == [1, 2, 3, 4, 5, 6]
    for layer, weights in found.items():
        assert torch.allclose(weights, expected[layer - 1][0], atol=1e-5)
    part = minilm.attention(TEXTS[2], layers=[-1], heads=[3])
    assert {layer: tuple(weights.shape) for layer, weights in part.items()} == {6: (1, *found[6].shape[1:])}
    assert torch.equal(part[6][0], found[6][3])


@pytest.mark.parametrize(
    "name", ["tiny-bert", "tiny-modernbert", "tiny-gpt2", "tiny-t5", "tiny-albert", "tiny-electra"]
)
def test_every_layer_is_that_of_the_reference(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random(name))
    model = Model(read_folder(tmp_path / "model"), words(special=True))
    network = transformers.AutoModel.from_pretrained(tmp_path / "model").eval()
    network = network.get_encoder() if name == "tiny-t5" else network
    texts = [said(30), said(3, start=5)]
    for number, text in enumerate(texts):
        ids = torch.tensor([model.tokenizer.encode(text).ids])  # type: ignore[union-attr]
        with torch.no_grad():
            expected = network(input_ids=ids, output_hidden_states=True).hidden_states
        assert len(expected) == model.network.reader.depth + 1
        for layer, states in enumerate(expected):
            for asked in (layer, layer - len(expected)):
                found = model.embed_tokens(texts, layer=asked)[number]
                assert np.abs(found - states[0].numpy()).max() < 1e-4, asked


def test_pools(minilm: Model) -> None:
    tokens = minilm.embed_tokens(TEXTS)
    assert [len(one) for one in tokens] == [len(minilm.tokenizer.encode(text)) for text in TEXTS]  # type: ignore[union-attr]
    pools: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "first": lambda one: one[0],
        "max": lambda one: one.max(0),
        "mean": lambda one: one.mean(0),
        "auto": lambda one: one.mean(0),
    }
    for how, make in pools.items():
        assert np.abs(minilm.embed(TEXTS, pooling=how) - np.stack([make(one) for one in tokens])).max() < 1e-5
    for one in minilm.embed_tokens(TEXTS, normalize=True):
        assert np.allclose(np.linalg.norm(one, axis=1), 1, atol=1e-5)


def test_the_folder_says_how_to_pool() -> None:
    model = Model(dataclasses.replace(random("tiny-bert"), pooling="max"), words(special=True))
    assert model.pooling == "max"
    assert np.array_equal(model.embed([said(5)]), model.embed([said(5)], pooling="max"))
    assert not np.allclose(model.embed([said(5)]), model.embed([said(5)], pooling="mean"), atol=1e-3)


# long texts


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("length", [14, 15, 16, 17, 40, 123])
def test_a_long_text_is_windowed_and_every_token_is_given_once(length: int, special: bool) -> None:
    model = Model(random("tiny-bert", longest=16), words(special=special))
    texts = [said(length), said(4, start=3), said(2 * length, start=1)]
    around = 2 * special
    found = model.embed_tokens(texts)
    assert [len(states) for states in found] == [length + around, 4 + around, 2 * length + around]
    whole = model.embed_tokens([texts[1]])[0]
    assert np.allclose(found[1], whole, atol=1e-5)
    for how in ("mean", "max"):
        pooled = model.embed(texts, pooling=how)
        expected = [getattr(states, how)(0) for states in found]
        assert np.abs(pooled - np.stack(expected)).max() < 1e-5
    for batch_tokens in (1, 17, 100):
        again = model.embed_tokens(texts, batch_tokens=batch_tokens)
        assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(found, again, strict=True))


def test_each_token_of_a_long_text_is_at_its_own_place() -> None:
    """After the embeddings a state tells its word: words that are far apart lose nothing and swap nothing."""
    checkpoint = random("tiny-gpt2", longest=16)
    with torch.no_grad():
        checkpoint.network.reader.get_parameter("embeddings.places.weight").zero_()
    model = Model(checkpoint, words(special=True))
    text = said(97)
    (found,) = model.embed_tokens([text], layer=0)
    table = checkpoint.network.get_parameter("decoder.embeddings.tokens.weight").detach().numpy()
    ids = model.tokenizer.encode(text).ids  # type: ignore[union-attr]
    assert np.allclose(found, table[list(ids)], atol=1e-6)


def test_a_text_that_fits_is_read_whole(minilm: Model) -> None:
    fitting = " ".join(["word"] * 510)
    (states,) = minilm.embed_tokens([fitting])
    ids = minilm.tokenizer.encode(fitting).ids  # type: ignore[union-attr]
    assert len(ids) == 512
    assert np.allclose(states, minilm.outputs([ids])[0].hidden.numpy(), atol=1e-5)


def test_a_very_long_text_of_minilm(minilm: Model) -> None:
    count = len(minilm.tokenizer.encode(LONG))  # type: ignore[union-attr]
    assert count > 600
    (states,) = minilm.embed_tokens([LONG])
    assert len(states) == count
    one, other = (minilm.embed([LONG, "hi"], batch_tokens=tokens)[0] for tokens in (100, 10_000))
    assert np.abs(one - other).max() < 1e-5
    assert np.abs(one - states.mean(0)).max() < 1e-5
    assert np.array_equal(minilm.embed([LONG, "hi"])[0], other)


def test_the_first_of_a_long_text_is_the_mean_over_its_windows() -> None:
    model = Model(random("tiny-bert", longest=16), words(special=True))
    ids = model.tokenizer.encode(said(20)).ids  # type: ignore[union-attr]
    parts = [[0, *ids[1:15], 1], [0, *ids[7:21], 1]]
    expected = torch.stack([output.hidden[0] for output in model.outputs(parts)]).mean(0)
    assert np.allclose(model.embed([said(20)], pooling="first")[0], expected, atol=1e-5)


def test_progress_is_told_up_to_the_last_text(minilm: Model) -> None:
    reports: list[Progress] = []
    minilm.embed([*TEXTS, TEXTS[0]], batch_tokens=12, progress=reports.append)
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    assert reports[-1] == Progress("texts", 6, 6)
    assert len(reports) > 3


# texts that cannot be read


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ("one string", "one string was given where a list of texts was expected. Write [text]."),
        ([], "the list of texts is empty; give at least one text."),
        (["a", ""], "text 1 is empty, so there is nothing to read."),
        (["a", " \n\t "], "text 1 is empty"),
        (["a", None], "text 1 is of type NoneType, but a string was expected."),
        (["a", 5], "text 1 is of type int, but a string was expected."),
        (["a", b"b"], 'text 1 is of type bytes, but a string was expected. Decode it first: text.decode("utf-8").'),
        (["a", "b\ud83dc"], "text 1 has half of a surrogate pair (U+D83D) at character 1"),
        (5, "a list of texts was expected, not 5."),
        (None, "a list of texts was expected, not None."),
    ],
)
def test_texts_that_cannot_be_read_are_told(minilm: Model, texts: Any, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        minilm.embed(texts)


def test_texts_may_come_one_by_one(minilm: Model) -> None:
    expected = minilm.embed(TEXTS)
    assert np.array_equal(minilm.embed(text for text in TEXTS), expected)
    assert np.array_equal(minilm.embed(np.array(TEXTS)), expected)
    assert np.array_equal(minilm.embed(tuple(TEXTS)), expected)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"pooling": "mena"}, 'pooling "mena" is not known. Did you mean "mean"?'),
        ({"layer": 7}, "layer 7 was given; this network has 0 (embeddings) to 6, or -1 for the last."),
        ({"layer": -8}, "layer -8 was given"),
        ({"batch_tokens": 0}, "batch_tokens is 0, expected at least 1 token."),
    ],
)
def test_settings_that_cannot_be_used_are_told(minilm: Model, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        minilm.embed(["a"], **settings)


def test_a_text_without_a_token_is_told() -> None:
    tokenizer = words(special=False)
    tokenizer.backend.normalizer = tokenizers.normalizers.Replace("\u200b", "")
    model = Model(random("tiny-gpt2"), tokenizer)
    with pytest.raises(InputError, match="text 1 has no token this tokenizer can read"):
        model.embed(["w1", "\u200b"])


def test_a_tokenizer_of_another_model_is_told() -> None:
    small = dataclasses.replace(preset("tiny-bert").config, vocabulary=50)
    network = build_on_meta(small, {})
    set_tensors(network, {path: torch.zeros(tensor.shape) for path, tensor in network.named_parameters()})
    model = Model(Checkpoint("bert", small, network.eval()), words(special=True))
    with pytest.raises(InputError, match="text 1 holds the token 99, but this network knows 50"):
        model.embed(["w1", "w2 w97"])
    with pytest.raises(InputError, match="the text holds the token 99, but this network knows 50"):
        model.attention("w97")


def test_a_preset_cannot_read_texts() -> None:
    model = regard.create("tiny-bert")
    for call in (lambda: model.embed(["a"]), lambda: model.attention("a")):
        with pytest.raises(InputError, match=r"no tokenizer \(a preset has none of its own\).* Give ids"):
            call()


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random("tiny-bert"))
    with pytest.raises(FolderError, match=f"{tmp_path}/model has no tokenizer: expected tokenizer.json"):
        regard.load(tmp_path / "model").embed(["a"])
    (tmp_path / "model" / "spiece.model").write_bytes(b"x")
    with pytest.raises(FolderError, match=r"It has spiece.model, which transformers converts into a tokenizer.json"):
        regard.load(tmp_path / "model").embed(["a"])


def test_a_tokenizer_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random("tiny-bert"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "model" / name).symlink_to(minilm_folder() / name)
    with pytest.raises(FolderError, match=r'"tokenizer(_config)?\.json" is a link out of the folder'):
        regard.load(tmp_path / "model")


def test_attention_of_a_long_text_is_given_by_window(minilm: Model) -> None:
    found = minilm.attention(LONG, layers=[1, 6], heads=[3])
    assert len(found.windows) > 1
    covered: set[int] = set()
    for window in found.windows:
        size = len(window.tokens)
        assert size <= 512
        assert (window.tokens[0], window.tokens[-1]) == ("[CLS]", "[SEP]")
        assert len(window.offsets) == size
        assert {layer: tuple(weights.shape) for layer, weights in window.weights.items()} == {
            1: (1, size, size),
            6: (1, size, size),
        }
        assert torch.allclose(window.weights[6].sum(-1), torch.ones(1, size), atol=1e-5)
        covered |= {place for start, end in window.offsets for place in range(start, end)}
    assert covered >= {place for place, letter in enumerate(LONG) if not letter.isspace()}
    with pytest.raises(InputError, match=r"was split into \d+ windows. Their weights are in .windows"):
        found[6]


def test_a_window_of_attention_is_that_of_its_text_alone(minilm: Model) -> None:
    window = minilm.attention(LONG, layers=[6]).windows[0]
    end = window.offsets[-2][1]
    alone = minilm.attention(LONG[:end], layers=[6])
    assert alone.tokens == window.tokens
    assert alone.offsets == window.offsets
    assert torch.allclose(alone[6], window.weights[6], atol=1e-6)


def test_attention_of_a_pair_that_is_too_long_is_refused(minilm: Model) -> None:
    assert minilm.attention("a cat", pair="a dog", layers=[6])[6].shape[-1] == 7
    with pytest.raises(InputError, match=r"the two texts have \d+ tokens together; .* 512. Give shorter texts"):
        minilm.attention(LONG, pair="a dog")


# saving


def test_minilm_saved_is_minilm_here_and_there(minilm: Model, theirs: Any, tmp_path: Path) -> None:
    assert minilm.save(tmp_path / "copy") == tmp_path / "copy"
    again = regard.load(tmp_path / "copy")
    assert np.array_equal(again.embed(TEXTS), minilm.embed(TEXTS))
    assert (again.pooling, again.info().parameters) == ("mean", minilm.info().parameters)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "copy")
    network = transformers.AutoModel.from_pretrained(tmp_path / "copy").eval()
    assert tokenizer(TEXTS)["input_ids"] == theirs(TEXTS)["input_ids"]
    with torch.no_grad():
        states = network(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    assert np.abs(states.numpy() - minilm.embed_tokens(TEXTS)[0]).max() < 1e-5
    assert json.loads((tmp_path / "copy" / "modules.json").read_text())[1]["path"] == "1_Pooling"


@pytest.mark.parametrize("name", TINY)
def test_saved_and_loaded_gives_the_same_outputs(name: str, tmp_path: Path) -> None:
    model = Model(random(name))
    model.save(tmp_path / "model")
    again = regard.load(tmp_path / "model")
    targets = rows([2, 5], 1) if model.config.kind == "encoder-decoder" else None
    for one, other in zip(*(m.outputs(rows([3, 20]), decoder_ids=targets) for m in (model, again)), strict=True):
        assert torch.equal(one.hidden, other.hidden)
        assert one.logits is None or torch.equal(one.logits, other.logits)
    assert (again.family, again.task, again.config) == (model.family, model.task, model.config)


def test_a_folder_is_not_overwritten_unless_told(tmp_path: Path) -> None:
    model = Model(random("tiny-bert"))
    model.save(tmp_path / "model")
    with pytest.raises(FolderError, match="exists and is not empty"):
        model.save(tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    Model(random("tiny-gpt2")).save(tmp_path / "model", overwrite=True)
    assert regard.load(tmp_path / "model").family == "gpt2"
    assert (tmp_path / "model" / "notes.txt").read_text() == "mine"


# what it says of itself


def test_repr_needs_nothing_but_the_model(tmp_path: Path) -> None:
    model = Model(random("tiny-bert", {"sequence": 2}))
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    assert repr(model) == f"Model(bert, classify, {parameters:,} parameters, cpu)"
    model.save(tmp_path / "model")
    loaded = regard.load(tmp_path / "model")
    for file in (tmp_path / "model").iterdir():
        file.unlink()
    assert repr(loaded) == repr(model)
    assert repr(Model(random("tiny-bert"))).startswith("Model(bert, no task, ")


@pytest.mark.parametrize(
    ("name", "heads", "task"),
    [
        ("tiny-bert", {}, None),
        ("tiny-bert", {"pooled": 0}, None),
        ("tiny-bert", {"sequence": 2}, "classify"),
        ("tiny-bert", {"token": 2}, "tag"),
        ("tiny-bert", {"span": 0}, "answer"),
        ("tiny-bert", {"masked": 0, "next": 0}, "masked"),
        ("tiny-gpt2", {"language": 0}, "causal"),
        ("tiny-t5", {"language": 0}, "translate"),
    ],
)
def test_the_task_is_told_by_the_heads(name: str, heads: dict[str, int], task: str | None) -> None:
    assert Model(random(name, heads)).task == task


def test_taps_are_seen_and_obeyed_by_a_compiled_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled would not see them, so it must not run while one is set."""

    def compiled(*_: Any, **__: Any) -> Callable[..., Any]:
        def refuse(*_: Any) -> None:
            raise AssertionError("the compiled network ran")

        return refuse

    monkeypatch.setattr(torch, "compile", compiled)
    model = Model(random("tiny-bert"), compile=True)
    with taps.record(model.network, "encoder.layers.0") as seen:
        model.outputs([[1, 2, 3]])
    assert tuple(seen["encoder.layers.0"].shape) == (3, 32)
    with pytest.raises(AssertionError, match="the compiled network ran"):
        model.outputs([[1, 2, 3]])


def test_batches_of_pairs_are_bounded_by_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(random("tiny-t5"))
    sizes: list[int] = []
    forward = model.network.forward

    def counted(batch: regard.Ragged, target: regard.Ragged) -> Any:
        sizes.append(batch.tokens + target.tokens)
        return forward(batch, target)

    monkeypatch.setattr(model.network, "forward", counted)
    assert len(model.outputs([[5]] * 40, decoder_ids=[[0] * 30] * 40, batch_tokens=100)) == 40
    assert max(sizes) <= 100


def test_a_text_of_nothing_visible_is_refused() -> None:
    model = regard.load("minilm", device="cpu")
    with pytest.raises(InputError, match="text 1 has no token"):
        model.embed(["a", "\u200b"])
    with pytest.raises(InputError, match="the text has no token"):
        model.attention("")


def test_the_folder_one_stands_in_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Model(random("tiny-bert")).save(tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    with pytest.raises(FolderError, match="is the current folder"):
        Model(random("tiny-bert")).save(".", overwrite=True)
