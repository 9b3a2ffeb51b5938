"""The files of a token store while it is built. A journal records how much is flushed to disk, to resume a build."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard import locks
from regard.data.corpus.documents import TextGroup
from regard.digests import describe_damage, file_digests, has_valid_digest, with_digest
from regard.errors import FolderError

FORMAT = 2  # of corpus.json; the first had no digests
REBUILD = "Delete that folder and start again: it is rebuilt from the text."
INDEX, JOURNAL = "corpus.json", "building.json"
TOKENS, DOCUMENTS, SENTENCES, OWNERS = "tokens.bin", "documents.bin", "sentences.bin", "owners.bin"


@dataclass(frozen=True)
class BuildPosition:
    """The sizes of the store at the end of a document, and the input file and byte offset reached."""

    tokens: int = 0
    documents: int = 0
    sentences: int = 0
    file: int = 0
    offset: int = 0


class StoreWriter:
    """Appends groups of tokenized chunks. Resuming a build truncates the files to the last position in the journal."""

    def __init__(self, folder: Path, spec: dict[str, Any]) -> None:
        self.folder, self.spec = folder, spec
        self.dtype = np.dtype(spec["dtype"])
        journal = read_json(folder / JOURNAL)
        if journal is None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self.position = BuildPosition()
        else:
            self.position = _mark(folder, journal, spec)
        self.tokens, self.documents, self.sentences = (
            self.position.tokens,
            self.position.documents,
            self.position.sentences,
        )
        self.saved_tokens = self.tokens
        if journal is not None:
            self._check_sizes()
        self.streams = {name: (folder / name).open("ab") for name in self._sizes()}
        for name, stream in self.streams.items():
            stream.truncate(self._sizes()[name] if journal else 0)
            if journal is None and name != TOKENS:
                stream.write(bytes(8))  # bounds begin with 0

    def _sizes(self) -> dict[str, int]:
        """Bytes of each file at the position in the journal."""
        sizes = {TOKENS: self.position.tokens * self.dtype.itemsize, DOCUMENTS: 8 * (self.position.documents + 1)}
        if self.spec["sentences"]:
            sizes |= {SENTENCES: 8 * (self.position.sentences + 1), OWNERS: 8 * (self.position.documents + 1)}
        return sizes

    def _check_sizes(self) -> None:
        """Raise FolderError if a file is shorter than the journal says."""
        for name, size in self._sizes().items():
            path = self.folder / name
            value = path.stat().st_size if path.is_file() else 0
            if value < size:
                raise FolderError(f"{path} has {value:,} bytes, expected {size:,} at least. {REBUILD}")

    def add(self, group: TextGroup, ids: list[list[int]]) -> None:
        """Write the tokens of a group, and the bounds of the documents and sentences that end in it."""
        end = [] if self.spec["end"] is None else [self.spec["end"]]
        parts: list[list[int]] = []
        done = 0
        for last, offset in zip(group.ends, group.offsets, strict=True):
            parts += [*self._counted(ids[done:last]), end]
            self.tokens += len(end)
            self._document()
            self.position = BuildPosition(self.tokens, self.documents, self.sentences, group.file, offset)
            done = last
        parts += self._counted(ids[done:])
        flat = np.fromiter(chain.from_iterable(parts), self.dtype)
        self.streams[TOKENS].write(flat.tobytes())

    def _counted(self, ids: list[list[int]]) -> list[list[int]]:
        """Count the tokens of these chunks, and write where each sentence ends."""
        lengths = [len(part) for part in ids if part]
        if self.spec["sentences"] and lengths:
            ends = self.tokens + np.cumsum(lengths)
            self.streams[SENTENCES].write(ends.astype(np.int64).tobytes())
        self.sentences += len(lengths)
        self.tokens += sum(lengths)
        return ids

    def _document(self) -> None:
        self.documents += 1
        self.streams[DOCUMENTS].write(np.int64(self.tokens).tobytes())
        if self.spec["sentences"]:
            self.streams[OWNERS].write(np.int64(self.sentences).tobytes())

    def save(self) -> None:
        """Flush the files to disk and record the end of the last complete document in the journal."""
        for stream in self.streams.values():
            stream.flush()
            os.fsync(stream.fileno())
        self._write_journal()
        self.saved_tokens = self.position.tokens

    def _write_journal(self) -> None:
        write_json(self.folder / JOURNAL, with_digest({"spec": self.spec, "position": asdict(self.position)}))

    def close(self) -> None:
        for stream in self.streams.values():
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()

    def finish(self, folder: Path) -> None:
        """Rename the folder to its final name. If the process is killed before that, the next build only renames it."""
        self._write_journal()
        counts = {"tokens": self.tokens, "documents": self.documents, "pieces": self.sentences}
        digests = file_digests(self.folder, self._sizes())
        write_json(self.folder / INDEX, with_digest({"format": FORMAT, **self.spec, **counts, "digests": digests}))
        remove_store(folder)
        self.folder.rename(folder)
        (folder / JOURNAL).unlink()


def _mark(folder: Path, journal: dict[str, Any], spec: dict[str, Any]) -> BuildPosition:
    """The position at which an earlier build with the same files and settings stopped."""
    if not has_valid_digest(journal) or not {"spec", "position"} <= journal.keys():
        raise FolderError(f"{folder / JOURNAL} is damaged: its content does not match its digest. {REBUILD}")
    check_same_spec(folder, journal["spec"], spec)
    return BuildPosition(**journal["position"])


def check_store(folder: Path, index: dict[str, Any], *, content: bool) -> None:
    """Raise FolderError if a store is damaged or of another format. `content` compares its files with their digests."""
    if index.get("format") != FORMAT:
        value = str(index.get("format"))[:20]
        raise FolderError(f"{folder} is a token store of format {value}, expected {FORMAT}. {REBUILD}")
    if not has_valid_digest(index):
        raise FolderError(f"{folder / INDEX} is damaged: its content does not match its digest. {REBUILD}")
    problem = describe_damage(folder, index["digests"]) if content else None
    if problem is not None:
        raise FolderError(f"the token store cannot be used: {problem}. {REBUILD}")


def foreign_files(folder: Path) -> list[str]:
    """Files in the folder that are not part of a token store; all files if there is none."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    ours = (INDEX, JOURNAL, TOKENS, DOCUMENTS, SENTENCES, OWNERS) if INDEX in names else ()
    return [name for name in names if name not in ours]


def remove_store(folder: Path) -> None:
    """Remove a token store, and its folder if that is empty then."""
    if (folder / INDEX).exists():
        for name in (INDEX, JOURNAL, TOKENS, DOCUMENTS, SENTENCES, OWNERS):
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not there, or not empty
        folder.rmdir()


def building_folder(folder: Path) -> Path:
    """The folder in which a store is built before it is renamed."""
    return folder.parent / f".{folder.name}.building"


def build_lock(folder: Path) -> AbstractContextManager[None]:
    """A lock, so that no other process builds this store."""
    fix = "Wait until it is done, or stop it: the next build continues from its last checkpoint."
    return locks.folder_lock(folder, activity="built", fix=fix)


def check_same_spec(folder: Path, stored: dict[str, Any], spec: dict[str, Any]) -> None:
    """Raise FolderError if a store, or an unfinished one, was built with other files or settings."""
    names = {"tokenizer": "another tokenizer", "files": "other files (or files that have changed since)"}
    differences = [names.get(name, f"{name}={stored.get(name)}") for name in spec if stored.get(name) != spec[name]]
    if differences:
        raise FolderError(
            f"{folder} was built with {' and '.join(differences)}. Use another folder, or overwrite=True."
        )


def read_json(path: Path) -> dict[str, Any] | None:
    """The content of a JSON file; None if it does not exist."""
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read: {error}. {REBUILD}") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path} contains a {type(value).__name__}, expected an object. {REBUILD}")
    checked: dict[str, Any] = value
    return checked


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file atomically: after a crash there is the old file or the new one."""
    temporary = path.with_suffix(".part")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.rename(path)
