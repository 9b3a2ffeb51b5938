"""Documents of text files as chunks ready for a tokenizer, with the file offset at which each document ends.

Documents are separated by a blank line. Files are streamed: only the current chunk is in memory, however long a
document or a line is. Chunks are cut before a space, where no tokenizer joins the characters on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from regard.data.corpus.sentences import sentence_spans
from regard.errors import InputError
from regard.text.decompress import DECOMPRESSION_ERRORS, decompressed
from regard.text.text_files import file_encoding, in_utf8

GROUP = 1 << 19  # characters handed to the tokenizer at once
CHUNK = 1 << 13  # characters of a chunk, if it is not a sentence
MAX_CHUNK = 1 << 16  # maximum characters of a chunk, even without a sentence end or a space
READ_BYTES = 1 << 20  # maximum bytes of a line read at once


@dataclass
class TextGroup:
    """Chunks of text in order. Document i ends after `ends[i]` chunks, at byte `offsets[i]` of the file."""

    file: int
    chunks: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    characters: int = 0
    bytes_read: int = 0  # bytes of the file on disk (compressed) read so far

    def add(self, chunks: list[str]) -> None:
        self.chunks += chunks
        self.characters += sum(map(len, chunks))


def read_text_groups(
    paths: list[Path],
    *,
    sentences: bool,
    lines: bool,
    file: int = 0,
    offset: int = 0,
    encoding: str | None = None,
) -> Iterator[TextGroup]:
    """Read all files, starting in file number `file` at byte `offset` of its UTF-8 text, which must end a document."""
    for number in range(file, len(paths)):
        name = file_encoding(paths[number], encoding)
        reader = _Reader(paths[number], number, name, sentences=sentences, lines=lines)
        try:
            yield from reader.groups(offset if number == file else 0)
        except DECOMPRESSION_ERRORS as error:
            raise InputError(f"{paths[number]} is damaged or cut short: {error}. Copy it again.") from error


class _Reader:
    def __init__(self, path: Path, number: int, encoding: str, *, sentences: bool, lines: bool) -> None:
        self.path, self.number, self.encoding = path, number, encoding
        self.sentences, self.lines = sentences, lines
        self.position_bytes = 0  # bytes read, after decompression

    def groups(self, offset: int) -> Iterator[TextGroup]:
        group, buffer, in_document, limit = TextGroup(self.number), "", False, 2 * CHUNK
        with self.path.open("rb") as raw:
            content = decompressed(raw, str(self.path))
            if content is raw and self.path.suffix in (".gz", ".xz"):
                raise EOFError(f"it is not compressed, but its name ends in {self.path.suffix}")
            stream = in_utf8(content, self.encoding, self.path)
            stream.seek(offset)
            self.position_bytes = offset
            for text in self._texts(stream):
                at_line_start = not buffer or buffer.endswith("\n")
                if text.strip() or not at_line_start:
                    buffer, in_document = buffer + text, True
                # Spaces without a line break belong to a line that continues, or to the end of the file.
                elif in_document and text.endswith("\n"):
                    self._end_document(group, buffer)
                    buffer, in_document, limit = "", False, 2 * CHUNK
                if len(buffer) > limit:
                    chunks, buffer = self._cut(buffer)
                    group.add(chunks)
                    limit = len(buffer) + 2 * CHUNK  # wait for as much new text before cutting again
                if group.characters > GROUP:
                    group.bytes_read = raw.tell()
                    yield group
                    group = TextGroup(self.number)
            if in_document:
                self._end_document(group, buffer)
        group.bytes_read = self.path.stat().st_size
        yield group

    def _texts(self, stream: BinaryIO) -> Iterator[str]:
        """The lines as text; very long lines in parts."""
        remainder = b""
        while line := stream.readline(READ_BYTES):
            before, self.position_bytes = self.position_bytes - len(remainder), self.position_bytes + len(line)
            line = remainder + line
            decodable = len(line) if line.endswith(b"\n") else _decodable_length(line)
            remainder = line[decodable:]
            yield self._decoded(line[:decodable], before)
        if remainder:
            self._decoded(remainder, self.position_bytes - len(remainder))

    def _decoded(self, line: bytes, before: int) -> str:
        try:
            text = line.decode("utf-8-sig" if before == 0 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path} is not UTF-8 text: byte {before + error.start} is {line[error.start]:#04x}. "
                "If it has another encoding, name it: --encoding cp1252 (encoding= in Python)."
            ) from error
        return text[:-2] + "\n" if text.endswith("\r\n") else text

    def _end_document(self, group: TextGroup, buffer: str) -> None:
        chunks, remainder = self._cut(buffer)
        group.add([*chunks, remainder] if remainder.strip() else chunks)
        group.ends.append(len(group.chunks))
        group.offsets.append(self.position_bytes)

    def _cut(self, buffer: str) -> tuple[list[str], str]:
        """Complete chunks, and the last one, which may continue."""
        if self.sentences:
            edges = [0, *(end for _, end in sentence_spans(buffer, lines=self.lines))]
        else:
            edges = [0]
            while len(buffer) - edges[-1] > CHUNK:
                edges.append(_before_space(buffer, edges[-1] + 1, edges[-1] + CHUNK))
            edges.append(len(buffer))
        chunks = [buffer[start:end] for start, end in pairwise(edges[:-1])]
        tail = buffer[edges[-2] :] if len(edges) > 1 else buffer
        while len(tail) > MAX_CHUNK:
            edge = _before_space(tail, 1, MAX_CHUNK)
            chunks.append(tail[:edge])
            tail = tail[edge:]
        return chunks, tail


def _before_space(text: str, start: int, end: int) -> int:
    """The position of the last line break up to `end`, else of the last space, else `end`."""
    for space in ("\n", " "):
        position = text.rfind(space, start, end)
        if position > 0:
            return position
    return end


def _decodable_length(part: bytes) -> int:
    """The number of bytes that can be decoded if the last character may be incomplete."""
    for back in range(1, min(4, len(part)) + 1):
        byte = part[-back]
        if byte >= 0xC0:  # the first byte of a character of several bytes
            size = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return len(part) if size <= back else len(part) - back
        if byte < 0x80:
            break
    return len(part)
