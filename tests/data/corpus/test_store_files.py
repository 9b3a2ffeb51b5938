"""The files of a token store: stale, damaged, replaced or removed."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from regard.data.corpus import documents
from regard.data.corpus.store_files import remove_store
from regard.data.corpus.token_store import Corpus
from regard.errors import FolderError
from regard.progress import Progress
from regard.text.tokenizer import Tokenizer

WORDS = ["[UNK]", "the", "man", "went", "home", "It", "was", "cold", ".", "Dr", "[END]", "He", "slept"]
TEXT = "the man went home. It was cold.\nHe slept\n\n\n  \nDr. the man slept.\n\nHe went."


def word_level(words: list[str] = WORDS) -> Tokenizer:
    backend = Backend(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return Tokenizer(backend)


def write(path: Path, text: str) -> Path:
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        stream.write(text)
    return path


def test_a_stale_store_is_refused_with_a_fix(tmp_path: Path) -> None:
    path, store = write(tmp_path / "a.txt", TEXT), tmp_path / "store"
    Corpus.build([path], word_level(), store)
    built = (store / "corpus.json").stat().st_mtime_ns
    Corpus.build([path], word_level(), store)
    assert (store / "corpus.json").stat().st_mtime_ns == built, "nothing to do"
    other = word_level([*WORDS, "more"])
    with pytest.raises(FolderError, match=r"another tokenizer\. Use another folder, or overwrite=True"):
        Corpus.build([path], other, store)
    with pytest.raises(FolderError, match="another tokenizer"):
        Corpus.open(store, tokenizer=other)
    with pytest.raises(FolderError, match="sentences=False"):
        Corpus.build([path], word_level(), store, sentences=True)
    write(path, TEXT + " more")
    with pytest.raises(FolderError, match="files that have changed since"):
        Corpus.build([path], word_level(), store)
    assert len(Corpus.build([path], word_level(), store, overwrite=True)[2]) == 4
    with (store / "tokens.bin").open("ab") as stream:
        stream.write(b"xx")
    with pytest.raises(
        FolderError, match=r"tokens\.bin is damaged: it has \d+ bytes, expected \d+\. Delete that folder"
    ):
        Corpus.open(store)


def test_a_store_is_replaced_or_removed_without_the_files_of_others(tmp_path: Path) -> None:
    path, store = write(tmp_path / "a.txt", TEXT), tmp_path / "store"
    Corpus.build([path], word_level(), store)
    (store / "notes.md").write_text("mine")
    assert len(Corpus.build([path], word_level(), store)) > 0
    with pytest.raises(FolderError, match=r"store holds notes\.md, which is not part of a token store"):
        Corpus.build([path], word_level(), store, overwrite=True)
    remove_store(store)
    assert [item.name for item in store.iterdir()] == ["notes.md"]
    (store / "notes.md").unlink()
    remove_store(store)
    assert not store.exists()


def flip(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["tokens.bin", "documents.bin", "sentences.bin", "owners.bin", "corpus.json"])
def test_a_flipped_bit_in_a_store_is_refused(tmp_path: Path, name: str) -> None:
    path, store = write(tmp_path / "a.txt", TEXT), tmp_path / "store"
    Corpus.build([path], word_level(), store, sentences=True)
    digit = (store / name).read_bytes().find(b'"bytes": ') + len(b'"bytes": ') if name == "corpus.json" else -1
    flip(store / name, digit)
    with pytest.raises(FolderError, match=rf"{name} is damaged: .*Delete that folder"):
        Corpus.open(store)
    with pytest.raises(FolderError, match=rf"{name} is damaged"):  # also where a training finds it already built
        Corpus.build([path], word_level(), store, sentences=True)


@pytest.mark.parametrize("content", ["[]", "7", "{", '{"format": 1}', '{"format": 2}', '{"format": []}'])
def test_an_index_that_is_none_or_of_another_version_is_refused(tmp_path: Path, content: str) -> None:
    path, store = write(tmp_path / "a.txt", TEXT), tmp_path / "store"
    Corpus.build([path], word_level(), store)
    (store / "corpus.json").write_text(content)
    with pytest.raises(FolderError, match="Delete that folder"):
        Corpus.build([path], word_level(), store)


@pytest.mark.parametrize("damage", ["journal", "tokens"])
def test_a_half_built_store_that_lost_something_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """A file shorter than what was safe would be filled up with zeros."""
    monkeypatch.setattr(documents, "GROUP", 100)
    path, store = write(tmp_path / "a.txt", "the man went home.\n\n" * 500), tmp_path / "store"

    def stop(progress: Progress) -> None:
        if progress.values["documents"] > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Corpus.build([path], word_level(), store, progress=stop, save_every=50)
    half = tmp_path / ".store.building"
    if damage == "tokens":
        with (half / "tokens.bin").open("r+b") as stream:
            stream.truncate(10)
    else:
        journal = half / "building.json"
        journal.write_text(journal.read_text().replace('"documents": ', '"documents": 1'))
    with pytest.raises(
        FolderError, match=r"building/(tokens\.bin has 10 bytes|building\.json is damaged).*Delete that"
    ):
        Corpus.build([path], word_level(), store)
