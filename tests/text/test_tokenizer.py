"""The tokenizer encodes and decodes texts, and is saved so that transformers reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.references import transformers
from tests.text.vocabulary_files import (
    OPEN_TEXT,
    TEXTS,
    WORDS,
    minilm,
    tiny_tokenizer,
    write_pairs,
    write_vocab,
)
from tokenizers import Tokenizer as Backend
from tokenizers import models, processors

from regard.errors import FolderError, InputError, RegardError
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer


def test_stored_truncation_and_padding_are_disabled() -> None:
    stored = json.loads((minilm() / "tokenizer.json").read_text())
    assert stored["truncation"]
    assert stored["padding"]
    ours = Tokenizer.load(minilm())
    assert len(ours.encode("word " * 1000)) == 1002
    assert ours.encode("word").ids == (101, 2773, 102)


@settings(max_examples=100, deadline=None)
@given(OPEN_TEXT)
def test_offsets_point_into_the_text(text: str) -> None:
    result = tiny_tokenizer().encode(text)
    assert len(result) == len(result.offsets) == len(result.word_ids) == len(result.special) == len(result.segments)
    end = 0
    for (start, stop), special in zip(result.offsets, result.special, strict=True):
        if not special:
            assert end <= start <= stop <= len(text)
            assert start < stop
            end = start


@settings(max_examples=50, deadline=None)
@given(st.lists(OPEN_TEXT, max_size=5))
def test_batch_equals_single_texts(texts: list[str]) -> None:
    assert tiny_tokenizer().encode_batch(texts) == [tiny_tokenizer().encode(text) for text in texts]
    assert tiny_tokenizer().encode_batch(texts, texts) == [tiny_tokenizer().encode(text, text) for text in texts]


def test_offsets_are_code_points_of_the_original_text() -> None:
    text = "😀 the CAFÉ"
    result = tiny_tokenizer().encode(text)
    words = [
        text[start:end] for (start, end), special in zip(result.offsets, result.special, strict=True) if not special
    ]
    assert words == ["😀", "the", "CAFÉ"]
    assert result.word_ids == (None, 0, 1, 2, None)


def test_without_special_tokens() -> None:
    assert tiny_tokenizer().encode("the man", special=False).ids == tiny_tokenizer().encode("the man").ids[1:-1]
    assert tiny_tokenizer().encode("", special=False) == Encoding((), (), (), (), (), ())
    assert (
        tiny_tokenizer().encode("").ids
        == (*tiny_tokenizer().surrounding_ids[0], *tiny_tokenizer().surrounding_ids[1])
        == (2, 3)
    )


def test_surrounding_ids_for_any_alphabet() -> None:
    backend = Backend(models.BPE({"[CLS]": 0, "[SEP]": 1, "б": 2}, []))
    special = [("[CLS]", 0), ("[SEP]", 1)]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=special
    )
    assert Tokenizer(backend).surrounding_ids == ((0,), (1,))


@pytest.mark.parametrize("kind", ["word", "gpt2", "roberta", "minilm", "bare"])
def test_transformers_reads_the_saved_tokenizer(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    if kind == "word":
        write_vocab(source, do_lower_case=False, tokenizer_class="BertTokenizer", model_max_length=77)
    elif kind in ("gpt2", "roberta"):
        write_pairs(source, roberta=kind == "roberta")
    elif kind == "bare":
        write_vocab(source)
    ours = Tokenizer.load(minilm() if kind == "minilm" else source)
    out = tmp_path / "out"
    out.mkdir()
    ours.save(out)
    again, theirs = Tokenizer.load(out), transformers.AutoTokenizer.from_pretrained(out)
    for text in TEXTS:
        assert again.encode(text, "the man") == ours.encode(text, "the man")
        assert theirs(text, "the man")["input_ids"] == list(ours.encode(text, "the man").ids)
    assert again.special == ours.special
    assert (theirs.mask_token_id, theirs.pad_token_id) == (ours.mask, ours.pad)
    if kind == "word":
        assert theirs.model_max_length == 77


def test_saving_drops_code_and_paths(tmp_path: Path) -> None:
    source = write_vocab(
        tmp_path / "a", auto_map={"AutoTokenizer": "x.py"}, tokenizer_class="Own", name_or_path="/home/x"
    )
    (tmp_path / "b").mkdir()
    Tokenizer.load(source).save(tmp_path / "b")
    written = json.loads((tmp_path / "b" / "tokenizer_config.json").read_text())
    assert "auto_map" not in written
    assert "name_or_path" not in written
    assert written["tokenizer_class"] == "PreTrainedTokenizerFast"


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("pairs", [None, TEXTS[::-1]])
def test_ids_batch_equals_encodings(pairs: list[str] | None, special: bool) -> None:
    result = tiny_tokenizer().encode_batch(TEXTS, pairs, special=special)
    assert tiny_tokenizer().ids_batch(TEXTS, pairs, special=special) == [list(one.ids) for one in result]
    assert tiny_tokenizer().ids_batch([]) == []


def test_ids_batch_checks_texts() -> None:
    wrong: list[Any] = ["fine", 3]
    with pytest.raises(InputError, match="text 1 is of type int"):
        tiny_tokenizer().ids_batch(wrong)
    with pytest.raises(InputError, match="half of a surrogate pair"):
        tiny_tokenizer().ids_batch(["a\ud83d"])
    with pytest.raises(InputError, match="2 texts but 1 second text;"):
        tiny_tokenizer().ids_batch(["a", "b"], ["c"])


def test_pairs_must_match() -> None:
    with pytest.raises(InputError, match="2 texts but 1 second text;"):
        tiny_tokenizer().encode_batch(["a", "b"], ["c"])
    with pytest.raises(InputError, match="the second text is of type int"):
        tiny_tokenizer().encode("a", 3)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("ids", [[0, 999], [-1]])
def test_id_outside_the_vocabulary(ids: list[int]) -> None:
    with pytest.raises(InputError, match=f"has the id {ids[-1]}, but this tokenizer's vocabulary has {len(WORDS)}"):
        tiny_tokenizer().decode(ids)


def test_links_of_the_target_tokenizer_stay_in_the_folder(tmp_path: Path) -> None:
    folder = write_vocab(tmp_path / "model")
    write_vocab(folder / "target_tokenizer")
    (tmp_path / "secret.json").write_text('{"[STOLEN]": 9}')
    (folder / "target_tokenizer" / "added_tokens.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(FolderError, match="is a link out of the folder"):
        Tokenizer.load(folder)


def test_target_tokenizer_is_not_a_link_and_has_no_target(tmp_path: Path) -> None:
    folder, other = write_vocab(tmp_path / "model"), write_vocab(tmp_path / "other")
    (folder / "target_tokenizer").symlink_to(other)
    with pytest.raises(FolderError, match='"target_tokenizer" is a link out of the folder'):
        Tokenizer.load(folder)
    (folder / "target_tokenizer").unlink()
    (folder / "target_tokenizer").symlink_to(".")  # its own target, and so on without an end
    loaded = Tokenizer.load(folder)
    assert loaded.target is not None
    assert loaded.target.target is None


class PanicException(BaseException):
    """What `tokenizers` raises where its own code fails."""


class Panicking:
    """A backend whose every call panics."""

    def no_truncation(self) -> None: ...

    def no_padding(self) -> None: ...

    def id_to_token(self, number: int) -> str:
        return "a"

    def _panic(self, *_: Any, **__: Any) -> Any:
        raise PanicException("index out of bounds " * 1000)

    encode = encode_batch = encode_batch_fast = decode = get_vocab = to_str = _panic


@pytest.mark.parametrize(
    "use",
    [
        lambda tokenizer: tokenizer.encode("a text"),
        lambda tokenizer: tokenizer.encode_batch(["a text"]),
        lambda tokenizer: tokenizer.ids_batch(["a text"], ["another"]),
        lambda tokenizer: tokenizer.decode([1]),
        lambda tokenizer: tokenizer.decode_generated([1]),
        lambda tokenizer: tokenizer.without_special_tokens(),
    ],
)
def test_panic_of_the_library_is_a_regard_error(use: Any) -> None:
    with pytest.raises(RegardError, match="index out of bounds") as caught:
        use(Tokenizer(Panicking()))  # type: ignore[arg-type]
    assert len(str(caught.value)) < 500


def test_very_large_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "<|endoftext|>": 1, "b": 2**31}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = Tokenizer.load(tmp_path)
    with pytest.raises(InputError, match=r"the id 2,147,483,648"):
        tokenizer.without_special_tokens()
