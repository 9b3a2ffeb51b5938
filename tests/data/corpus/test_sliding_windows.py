"""Windows that slide over running text: every token once, with its characters and words, whatever the pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.corpus import sliding_windows as running
from regard.data.corpus.sliding_windows import TextChunk, TextWindow, sliding_windows, text_chunks
from regard.data.readers import read
from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

TEXT = "The old man went to the market.\n\n\nThe market was closed, so he walked home.\n  Again?\n\nYes.\n"


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return train_tokenizer_from_texts([TEXT] * 20, kind="bpe", size=290)


def cut(text: str, words: Tokenizer, *, size: int, overlap: float) -> list[TextWindow]:
    return list(sliding_windows([TextChunk(text, True)], words, size=size, overlap=overlap))


@settings(deadline=None)
@given(text=st.text(max_size=80), size=st.integers(2, 20), overlap=st.floats(0, 0.95))
def test_every_token_but_the_first_is_scored_once(words: Tokenizer, text: str, size: int, overlap: float) -> None:
    result = cut(text, words, size=size, overlap=overlap)
    ids = list(words.encode(text, special=False).ids)
    period = size if round(size * overlap) == 0 else len(ids)  # without an overlap the first of each window
    assert [token for one in result for token in one.ids[one.first_scored :]] == [
        token for place, token in enumerate(ids) if place % period
    ]
    assert all(len(one.ids) <= size for one in result)
    assert sum(one.characters for one in result) <= len(text)
    assert sum(one.words for one in result) <= len(text.split())


def test_windows_move_on_by_what_they_do_not_share(words: Tokenizer) -> None:
    ids = list(words.encode(TEXT, special=False).ids)
    result = cut(TEXT, words, size=8, overlap=0.25)
    assert [one.ids for one in result[:2]] == [ids[:8], ids[6:14]]
    assert [one.first_scored for one in result] == [1, *[2] * (len(result) - 1)]
    assert result[-1].ids == ids[6 * (len(result) - 1) :]
    whole = cut(TEXT, words, size=1000, overlap=0.5)
    assert len(whole) == 1
    assert whole[0].words == len(TEXT.split()) - 1  # the first token is given, and a word begins with it
    assert sum(one.words for one in result) == whole[0].words


def test_a_file_is_one_text_and_its_pieces_are_tokenized_as_the_whole(
    words: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 3)
    expected = cut(TEXT * 3, words, size=16, overlap=0.5)
    for size in (24, 40, 1 << 18):
        monkeypatch.setattr(running, "CHUNK", size)
        monkeypatch.setattr(running, "CUT_RANGE", 20)
        parts = list(text_chunks(read(path, task="text")))
        assert "".join(part.text for part in parts) == TEXT * 3
        assert [part.starts_text for part in parts] == [True] + [False] * (len(parts) - 1)
        assert (len(parts) > 1) == (size < 100)
        assert list(sliding_windows(parts, words, size=16, overlap=0.5)) == expected


def test_files_and_rows_are_texts_of_their_own(words: Tokenizer, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(TEXT.replace("\n", "\r\n").encode())
    results = list(text_chunks(read(str(tmp_path / "*.txt"), task="text")))
    assert results == [TextChunk(TEXT, True), TextChunk(TEXT, True)]
    (tmp_path / "rows.csv").write_text('text,label\n"The old man",a\nYes.,b\n')
    results = list(text_chunks(read(tmp_path / "rows.csv", task="text")))
    assert results == [TextChunk("The old man", True), TextChunk("Yes.", True)]
    ids = [list(words.encode(one.text, special=False).ids) for one in results]
    assert [one.ids for one in sliding_windows(results, words, size=100, overlap=0.0)] == [
        one for one in ids if len(one) > 1
    ]


@pytest.mark.parametrize(
    ("size", "overlap", "message"), [(1, 0.5, "at least 2"), (8, 1.0, "share 1 of"), (8, -0.1, "0 up")]
)
def test_windows_that_cannot_be(words: Tokenizer, size: int, overlap: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cut(TEXT, words, size=size, overlap=overlap)
