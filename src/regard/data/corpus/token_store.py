"""Text files as one memory-mapped array of tokens with the bounds of documents and, optionally, of sentences.

A store is built in a temporary folder that is renamed when it is complete. Every few million tokens, `building.json`
records how much of each file is on disk, so that a build that was killed continues from there.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.batching.prefetch import Prefetcher
from regard.data.corpus.documents import TextGroup, read_text_groups
from regard.data.corpus.store_files import (
    DOCUMENTS,
    INDEX,
    OWNERS,
    SENTENCES,
    TOKENS,
    StoreWriter,
    build_lock,
    building_folder,
    check_same_spec,
    check_store,
    foreign_files,
    read_json,
)
from regard.errors import FolderError, InputError
from regard.progress import OnProgress, Progress
from regard.text.flat_tokens import Ints
from regard.text.tokenizer import Tokenizer


class Corpus:
    """A complete token store. Any document is read in constant time, however large the store is."""

    def __init__(self, folder: Path, index: dict[str, Any]) -> None:
        self.folder, self.index = folder, index

    @classmethod
    def open(cls, folder: str | Path, *, tokenizer: Tokenizer | None = None, check: bool = True) -> Corpus:
        """Open a complete store. Raises FolderError if it is damaged or was built with another tokenizer.

        `check` reads all files once to compare them with their digests.
        """
        folder = Path(folder)
        index = read_json(folder / INDEX)
        if index is None:
            unfinished = building_folder(folder).is_dir()
            fix = (
                "Its build was not finished: build it again, it continues where it stopped."
                if unfinished
                else "Build it."
            )
            raise FolderError(f"{folder} holds no token store ({INDEX}). {fix}")
        check_store(folder, index, content=check)
        if tokenizer is not None and index["tokenizer"] != tokenizer_hash(tokenizer):
            raise FolderError(
                f"{folder} was built with another tokenizer. Give that one, or build a store for this one."
            )
        return cls(folder, index)

    @classmethod
    def build(
        cls,
        files: Sequence[str | Path],
        tokenizer: Tokenizer,
        folder: str | Path,
        *,
        sentences: bool = False,
        lines: bool = True,
        end: int | None = None,
        encoding: str | None = None,
        progress: OnProgress | None = None,
        save_every: int = 1 << 23,
        overwrite: bool = False,
    ) -> Corpus:
        """Tokenize files into a store, continue a build that was stopped, or open the store if it is complete.

        sentences: also store sentence bounds.
        lines: a line break ends a sentence.
        end: id of a token that is added after each document. No other special tokens are added.
        encoding: encoding of the files; recognized from their bytes if not given.
        save_every: number of tokens between two entries of the journal.
        progress: called with the bytes read, and the documents and tokens so far.
        """
        paths = _check_files(files)
        folder, stamps = Path(folder), _stamps(paths)
        spec = _store_spec(paths, tokenizer, sentences=sentences, lines=lines, end=end, encoding=encoding)
        if (
            foreign_files(folder) and not (folder / INDEX).exists()
        ):  # checked last: another process may just have finished
            raise FolderError(f"{folder} exists and is no token store. Name a new folder.")
        if overwrite and (others := foreign_files(folder)):
            raise FolderError(f"{folder} holds {others[0]}, which is not part of a token store. Name a new folder.")
        if not overwrite and _is_built(folder, spec):
            return cls.open(folder)
        with build_lock(folder):
            if not overwrite and _is_built(folder, spec):  # another process has just finished it
                return cls.open(folder)
            if overwrite:
                shutil.rmtree(building_folder(folder), ignore_errors=True)
            store = StoreWriter(building_folder(folder), spec)
            _fill(store, paths, tokenizer, progress, save_every, encoding)
            if stamps != _stamps(paths):
                raise InputError("a file changed while it was read. Build again when it is no longer written to.")
            if store.documents == 0:
                raise InputError(f"there is no text in {', '.join(map(str, paths))}.")
            store.finish(folder)
        return cls.open(folder, check=False)

    def __len__(self) -> int:
        return int(self.index["documents"])

    @cached_property
    def tokens(self) -> npt.NDArray[Any]:
        """All tokens, document after document."""
        return _mapped(self.folder / TOKENS, self.index["dtype"])

    @cached_property
    def bounds(self) -> Ints:
        """Where each document begins in the tokens, and the end of the last."""
        return _mapped(self.folder / DOCUMENTS, "int64")

    @cached_property
    def sentence_bounds(self) -> Ints:
        """Where each sentence begins in the tokens, and the end of the last."""
        self._needs_sentences()
        return _mapped(self.folder / SENTENCES, "int64")

    @cached_property
    def document_sentences(self) -> Ints:
        """The bounds of each document in sentences."""
        self._needs_sentences()
        return _mapped(self.folder / OWNERS, "int64")

    @property
    def lengths(self) -> Ints:
        return np.diff(self.bounds)

    def __getitem__(self, number: int) -> npt.NDArray[Any]:
        number = self._number(number)
        return self.tokens[self.bounds[number] : self.bounds[number + 1]]

    def sentences(self, number: int) -> list[npt.NDArray[Any]]:
        """The tokens of a document, sentence by sentence, without the end token."""
        number = self._number(number)
        first, last = self.document_sentences[number : number + 2]
        edges = self.sentence_bounds[first : last + 1].tolist()
        return [self.tokens[start:end] for start, end in pairwise(edges)]

    def _number(self, number: int) -> int:
        if not -len(self) <= number < len(self):
            raise IndexError(f"document {number} was requested, but the store has {len(self)}.")
        return number % len(self)

    def _needs_sentences(self) -> None:
        if not self.index["sentences"]:
            raise InputError(f"{self.folder} was built without sentence bounds. Build it with sentences=True.")


def _is_built(folder: Path, spec: dict[str, Any]) -> bool:
    """Whether the store is complete. Raises FolderError if it was built with other files or settings."""
    index = read_json(folder / INDEX)
    if index is not None:
        check_store(folder, index, content=False)
        check_same_spec(folder, index, spec)
    return index is not None


def _fill(
    store: StoreWriter,
    paths: list[Path],
    tokenizer: Tokenizer,
    progress: OnProgress | None,
    save_every: int,
    encoding: str | None,
) -> None:
    """Read, tokenize and write, each in its own thread; the chunks of a group are tokenized in parallel."""
    sizes = [path.stat().st_size for path in paths]
    settings = store.spec
    source = read_text_groups(
        paths,
        sentences=settings["sentences"],
        lines=settings["lines"],
        file=store.position.file,
        offset=store.position.offset,
        encoding=encoding,
    )
    try:
        for group, ids in Prefetcher(_encoded(Prefetcher(source), tokenizer)):
            store.add(group, ids)
            if store.position.tokens - store.saved_tokens >= save_every:
                store.save()
            if progress is not None:
                done = sum(sizes[: group.file]) + group.bytes_read
                counts = {"documents": store.documents, "tokens": store.tokens}
                progress(Progress("bytes", done, sum(sizes), counts))
    finally:
        store.close()


def _encoded(source: Iterable[TextGroup], tokenizer: Tokenizer) -> Iterator[tuple[TextGroup, list[list[int]]]]:
    for group in source:
        yield group, tokenizer.ids_batch(group.chunks, special=False)


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """A hash that is equal for tokenizers that tokenize every text in the same way."""
    return hashlib.blake2b(tokenizer.to_json().encode(), digest_size=16).hexdigest()


def _check_files(files: Sequence[str | Path]) -> list[Path]:
    if isinstance(files, str | Path):
        raise InputError(f"one path was given where a list of files was expected. Write [{str(files)!r}].")
    paths = [Path(file) for file in files]
    if not paths:
        raise InputError("no file was given; a token store needs at least one.")
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path} is not a file. Give text files, plain or .gz or .xz.")
    return paths


def _store_spec(
    paths: list[Path], tokenizer: Tokenizer, *, sentences: bool, lines: bool, end: int | None, encoding: str | None
) -> dict[str, Any]:
    """What a store depends on: the same files, tokenizer and settings give the same store."""
    highest = max(tokenizer.backend.get_vocab().values())
    if end is not None and not 0 <= end <= highest:
        raise InputError(f"the end token {end} is not in the tokenizer's vocabulary of {highest + 1}.")
    if end is not None and sentences:
        raise InputError("an end token is for causal models, sentence bounds are for pairs. Request one of them.")
    return {
        "tokenizer": tokenizer_hash(tokenizer),
        "files": [_described(path, encoding) for path in paths],
        "dtype": "uint16" if highest < 1 << 16 else "uint32",
        "sentences": sentences,
        "lines": lines,
        "end": end,
    }


def _described(path: Path, encoding: str | None) -> dict[str, Any]:
    described = {"name": path.name, "size": path.stat().st_size, "hash": _file_hash(path)}
    return described if encoding is None else {**described, "encoding": encoding}


def _file_hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _stamps(paths: list[Path]) -> list[tuple[int, int]]:
    stats = [path.stat() for path in paths]
    return [(stat.st_size, stat.st_mtime_ns) for stat in stats]


def _mapped(path: Path, dtype: str) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode="r")
