from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.batching.framing import Frame
from regard.data.corpus.text_source import Stream, TextSource, split_corpus
from regard.data.corpus.token_store import Corpus
from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
DOCUMENTS = [
    "\n".join(" ".join(WORDS[(i + j) % 10] for j in range(i % 7 + 2)) + "." for i in range(n, n + 5)) for n in range(12)
]


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return train_tokenizer_from_texts(DOCUMENTS * 5, size=50)


def built(tmp_path: Path, words: Tokenizer, documents: list[str], *, sentences: bool = False) -> Corpus:
    (tmp_path / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    return Corpus.build([tmp_path / "text.txt"], words, tmp_path / "store", sentences=sentences)


def test_documents_are_on_one_side(tmp_path: Path, words: Tokenizer) -> None:
    corpus = built(tmp_path, words, DOCUMENTS)
    learned, rows = split_corpus(corpus, fraction=0.25, seed=3)
    assert rows is not None
    assert sorted([*learned.documents, *rows.documents]) == list(range(12))
    assert learned.size + rows.size == len(corpus.tokens)
    assert 0.2 < rows.size / len(corpus.tokens) < 0.45
    again, other = split_corpus(corpus, fraction=0.25, seed=3)[1], split_corpus(corpus, fraction=0.25, seed=4)[1]
    assert again is not None
    assert other is not None
    assert again.documents.tolist() == rows.documents.tolist() != other.documents.tolist()
    both = np.concatenate([corpus[number] for number in rows.documents])
    assert rows.read(np.arange(rows.size)).tolist() == both.tolist()
    assert rows.counts(words.size).tolist() == np.bincount(both, minlength=words.size).tolist()
    assert split_corpus(corpus, fraction=0.0)[1] is None


def test_a_single_document_gives_its_end(tmp_path: Path, words: Tokenizer) -> None:
    corpus = built(tmp_path, words, DOCUMENTS[:1])
    learned, rows = split_corpus(corpus, fraction=0.25)
    assert rows is not None
    assert [*learned.read(np.arange(learned.size)), *rows.read(np.arange(rows.size))] == corpus.tokens.tolist()
    with pytest.raises(InputError, match=r"1 document, too few to use 2 for validation"):
        split_corpus(corpus, fraction=0.25, min_documents=2)


def test_masked_blocks_are_framed_and_stay_in_their_document(tmp_path: Path, words: Tokenizer) -> None:
    corpus = built(tmp_path, words, DOCUMENTS)
    stream = Stream.of(corpus, np.array([1, 4, 9]))
    rows = TextSource(stream, Frame.of(words), "mlm", max_tokens=16).epoch(0)
    batch = rows.take(range(len(rows.lengths)))
    assert batch.tokens.lengths.tolist() == rows.lengths.tolist()
    assert max(rows.lengths) <= 16
    texts = [ids.tolist() for ids in batch.tokens.split(batch.tokens.ids)]
    assert {(ids[0], ids[-1]) for ids in texts} == {(words.cls, words.sep)}
    whole = [token for ids in texts for token in ids[1:-1]]
    assert whole == [token for number in (1, 4, 9) for token in corpus[number].tolist()]
    assert (batch["learn"] == 0).all()


def test_causal_blocks_run_across_documents_and_move(tmp_path: Path, words: Tokenizer) -> None:
    corpus = built(tmp_path, words, DOCUMENTS)
    stream = Stream.of(corpus, np.array([1, 4, 9]))
    source = TextSource(stream, Frame.of(words), "causal", max_tokens=16)
    cuts = []
    for epoch in (0, 1):
        rows = source.epoch(epoch)
        batch = rows.take(range(len(rows.lengths)))
        assert batch.tokens.ids.tolist() == stream.read(np.arange(stream.size)).tolist()
        assert (rows.lengths[1:-1] == 16).all()
        cuts.append(rows.lengths.tolist())
    assert cuts[0] != cuts[1]
    assert source.epoch(1) is source.epoch(1)


def test_pairs_are_what_the_tokenizer_makes_of_two_texts(tmp_path: Path, words: Tokenizer) -> None:
    corpus = built(tmp_path, words, DOCUMENTS, sentences=True)
    stream = Stream.of(corpus, np.array([0, 2, 3, 5, 8]))
    rows = TextSource(stream, Frame.of(words), "mlm+nsp", max_tokens=40).epoch(0)
    order = np.arange(len(rows.lengths))[::-1].copy()
    batch = rows.take(order)
    assert batch.tokens.lengths.tolist() == rows.lengths[order].tolist()
    assert batch.tokens.segments is not None
    assert set(batch["next"].tolist()) == {0, 1}
    flat = stream.read(np.arange(stream.size)).tolist()
    joined = " ".join(map(str, flat))
    for ids, kinds, label in zip(
        batch.tokens.split(batch.tokens.ids), batch.tokens.split(batch.tokens.segments), batch["next"], strict=True
    ):
        assert words.sep is not None
        first = ids[kinds == 0][1:-1].tolist()
        second = ids[kinds == 1][:-1].tolist()
        assert (ids[0], ids[len(first) + 1], ids[-1]) == (words.cls, words.sep, words.sep)
        assert torch.equal(kinds, kinds.sort().values)
        if label == 0:
            assert " ".join(map(str, first + second)) in joined
