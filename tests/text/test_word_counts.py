"""Words are counted exactly, in limited memory."""

from __future__ import annotations

from tests.text.corpus import CORPUS
from tokenizers import pre_tokenizers

from regard.text.text_files import split_chunks
from regard.text.vocabularies import bpe, wordpiece
from regard.text.vocabularies.common import VocabularySettings
from regard.text.word_counts import WordCounter, scale_counts


def test_counts_are_those_of_the_whole_text() -> None:
    for kind, vocabulary in (("wordpiece", wordpiece), ("bpe", bpe)):
        shell = vocabulary.new_backend(VocabularySettings(kind, 300, kind == "wordpiece", 1000, 1000))
        assert shell.pre_tokenizer is not None
        counter = WordCounter(shell.normalizer, shell.pre_tokenizer, keep_spaces=kind == "bpe")
        for piece in split_chunks(iter([CORPUS * 40])):
            counter.add(piece)
        counter.flush()
        text = CORPUS * 40 if shell.normalizer is None else shell.normalizer.normalize_str(CORPUS * 40)
        expected: dict[str, int] = {}
        for word, _ in shell.pre_tokenizer.pre_tokenize_str(text):
            expected[word] = expected.get(word, 0) + 1
        assert counter.words == expected
        assert (counter.total, counter.dropped) == (sum(expected.values()), 0)


def test_scaled_counts_keep_their_proportions() -> None:
    words = [("the", 700), ("of", 200), *((f"w{i}", 1) for i in range(100))]
    assert list(scale_counts(words, 1000, 1000)) == words
    results = dict(scale_counts(words, 1000, 100))
    assert (results["the"], results["of"], sum(results.values())) == (70, 20, 100)
    assert set(results.values()) == {70, 20, 1}


def test_memory_is_limited_by_max_words() -> None:
    """Many distinct words and a few frequent ones: the counter never holds more than it may."""
    counter, limit = WordCounter(None, pre_tokenizers.WhitespaceSplit(), keep_spaces=False, max_words=20_000), 0
    for start in range(0, 500_000, 2000):
        counter.add(" ".join(f"{number:x}" for number in range(start, start + 2000)))
        counter.add("the market and the apples " * 20)
        limit = max(limit, len(counter.words), len(counter.strings) - 400_000)
    counter.flush()
    assert max(limit, len(counter.words)) <= 20_000
    assert counter.words["the"] == 10_000
    assert counter.total == 500_000 + 25_000
    assert counter.words.total() + counter.dropped == counter.total
