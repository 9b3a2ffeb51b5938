"""Tokenizer files give the same tokens as in transformers; damaged files are named in the error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.references import transformers
from tests.text.vocabulary_files import (
    TEXTS,
    WORDS,
    minilm,
    write_pairs,
    write_vocab,
)
from tokenizers import AddedToken

from regard.errors import FolderError
from regard.text.tokenizer import Tokenizer


def check_same(ours: Tokenizer, theirs: Any, text: str, pair: str | None = None) -> None:
    result = ours.encode(text, pair)
    reference = theirs(
        text, pair, return_offsets_mapping=True, return_special_tokens_mask=True, return_token_type_ids=True
    )
    assert list(result.ids) == reference["input_ids"]
    assert list(result.offsets) == [tuple(span) for span in reference["offset_mapping"]]
    assert list(result.special) == [bool(flag) for flag in reference["special_tokens_mask"]]
    assert list(result.segments) == reference["token_type_ids"]
    assert list(result.word_ids) == reference.word_ids()
    assert list(result.sequence_ids) == reference.sequence_ids()


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"do_lower_case": False, "tokenize_chinese_chars": False, "tokenizer_class": "BertTokenizer"},
    ],
)
def test_wordpiece_equals_transformers(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = write_vocab(tmp_path, **config)
    ours, theirs = Tokenizer.load(folder), transformers.BertTokenizer.from_pretrained(folder)
    for text in TEXTS:
        check_same(ours, theirs, text)
        check_same(ours, theirs, text, "the man")
        ids = ours.encode(text).ids
        assert ours.decode(ids) == theirs.decode(list(ids), skip_special_tokens=True)
    assert ours.size == len(theirs)


@pytest.mark.parametrize("config", [{}, {"add_prefix_space": True}, {"tokenizer_class": "GPT2Tokenizer"}])
def test_gpt2_bpe_equals_transformers(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = write_pairs(tmp_path, roberta=False, **config)
    ours, theirs = Tokenizer.load(folder), transformers.GPT2Tokenizer.from_pretrained(folder)
    for text in TEXTS:
        check_same(ours, theirs, text)
        assert ours.decode(ours.encode(text).ids, special=True).strip(" ") == text.strip(" ")
    end = ours.size - 1
    assert (ours.bos, ours.eos, ours.unk, ours.cls, ours.surrounding_ids) == (end, end, end, None, ((), ()))


@pytest.mark.parametrize("config", [{}, {"add_prefix_space": True}, {"tokenizer_class": "RobertaTokenizer"}])
def test_roberta_bpe_equals_transformers(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = write_pairs(tmp_path, roberta=True, **config)
    mask = AddedToken("<mask>", lstrip=True, normalized=False)  # as in the tokenizer.json of the published models
    ours, theirs = Tokenizer.load(folder), transformers.RobertaTokenizerFast.from_pretrained(folder, mask_token=mask)
    for text in TEXTS:
        check_same(ours, theirs, text)
        check_same(ours, theirs, text, "the man")
    assert (ours.cls, ours.pad, ours.sep, ours.unk, ours.mask) == (0, 1, 2, 3, ours.size - 1)
    assert (ours.surrounding_ids, ours.kind) == (((0,), (2,)), "bpe")


def test_pretrained_tokenizer_equals_transformers() -> None:
    ours, theirs = Tokenizer.load(minilm()), transformers.AutoTokenizer.from_pretrained(minilm())
    for text in TEXTS:
        check_same(ours, theirs, text)
        check_same(ours, theirs, text, "the man")
    assert ours.special == {"cls": 101, "sep": 102, "mask": 103, "pad": 0, "unk": 100}
    assert (ours.size, ours.kind) == (30522, "wordpiece")


def test_roles_from_the_special_tokens_map(tmp_path: Path) -> None:
    folder = write_vocab(tmp_path)
    (folder / "special_tokens_map.json").write_text(json.dumps({"bos_token": {"content": "the"}, "eos_token": "man"}))
    ours = Tokenizer.load(folder)
    assert (ours.bos, ours.eos) == (WORDS.index("the"), WORDS.index("man"))


def test_tokens_added_after_training(tmp_path: Path) -> None:
    folder = write_vocab(tmp_path)
    (folder / "added_tokens.json").write_text(json.dumps({"[ENT]": len(WORDS)}))
    ours = Tokenizer.load(folder)
    assert ours.encode("the [ENT]", special=False).ids == (WORDS.index("the"), len(WORDS))
    (folder / "added_tokens.json").write_text(json.dumps({"[ENT]": 999}))
    with pytest.raises(FolderError, match="different models"):
        Tokenizer.load(folder)


def test_folder_without_a_tokenizer(tmp_path: Path) -> None:
    assert not Tokenizer.exists(tmp_path)
    with pytest.raises(FolderError, match=r"expected tokenizer\.json, vocab\.txt, or vocab\.json"):
        Tokenizer.load(tmp_path)
    with pytest.raises(FolderError, match="is not a folder"):
        Tokenizer.load(tmp_path / "nowhere")
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(FolderError, match="AutoTokenizer"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", '{"model":', "cannot be read"),
        ("vocab.txt", b"\xff\xfe", "not UTF-8"),
        ("tokenizer_config.json", "{", "not JSON"),
        ("special_tokens_map.json", "[1]", "contains a list"),
        ("vocab.txt", "[UNK]\nthe\n", r'no line "\[CLS\]"'),
    ],
)
def test_broken_file_is_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    folder = write_vocab(tmp_path)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FolderError, match=message) as caught:
        Tokenizer.load(folder)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json", "tokenizer_config.json", "added_tokens.json"])
@pytest.mark.parametrize("kind", ["pipe", "sparse", "folder", "broken link", "link out", "loop"])
def test_only_regular_files_are_read(tmp_path: Path, name: str, kind: str) -> None:
    folder = write_vocab(tmp_path / "inside")
    path = folder / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "secret").write_text("{}")
        path.symlink_to({"broken link": "nothing", "link out": str(tmp_path / "secret"), "loop": name}[kind])
    with pytest.raises(FolderError) as caught:
        Tokenizer.load(folder)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer_config.json", {"do_lower_case": "yes"}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": "a"}}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9": 3}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9": {}}}),
        ("added_tokens.json", {"a": None}),
        ("added_tokens.json", {"a": [1]}),
        ("added_tokens.json", {"a": "x"}),
    ],
)
def test_file_with_wrong_types_is_named(tmp_path: Path, name: str, value: dict[str, Any]) -> None:
    folder = write_vocab(tmp_path)
    (folder / name).write_text(json.dumps(value))
    with pytest.raises(FolderError, match=name):
        Tokenizer.load(folder)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"])
@pytest.mark.parametrize("depth", [200, 100_000])
def test_deeply_nested_file_is_named(tmp_path: Path, name: str, depth: int) -> None:
    folder = write_vocab(tmp_path)
    (folder / name).write_text('{"a":' * depth + "1" + "}" * depth)
    with pytest.raises(FolderError, match=name):
        Tokenizer.load(folder)


def test_invalid_merge_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\na b c\n")
    with pytest.raises(FolderError, match=r"merges\.txt line 3"):
        Tokenizer.load(tmp_path)


def test_empty_special_token_is_refused(tmp_path: Path) -> None:
    folder = write_pairs(tmp_path, roberta=True, tokenizer_class="RobertaTokenizer", cls_token="")
    with pytest.raises(FolderError, match=r'tokenizer_config\.json: "" cannot be a special token'):
        Tokenizer.load(folder)
