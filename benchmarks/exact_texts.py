"""Texts of an exact number of tokens, made of the words of real records, as the task of a model prepares them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle

from regard.data.batching.examples import Inputs
from regard.data.batching.framing import Frame
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import AnswerRecord, ClassifyRecord, Record, TagRecord
from regard.tasks.task import Task
from regard.text.tokenizer import Tokenizer

MIN_PAIR = 8  # tokens of a question with its context at least


def exact_inputs(task: Task, records: Sequence[Record], sizes: Sequence[int], preprocessing: Preprocessing) -> Inputs:
    """A batch of texts with these numbers of tokens, special ones included, with the positions that the task needs.

    A text has the words of several records one after the other, without those that would make it too long. A question
    is that of a record, cut to a third of all tokens; its context is such a text. Tagged texts have no neighbors. The
    tokenizer must split words as BERT's does, so that a text has as many tokens as its words.
    """
    stream = _Words(records, preprocessing.tokenizer)
    made = [stream.record(size) for size in sizes]
    bound = task.bind(preprocessing)
    examples = bound.examples(made, preprocessing, labeled=False)
    expected = [max(size, MIN_PAIR) if isinstance(records[0], AnswerRecord) else size for size in sizes]
    assert examples.lengths.tolist() == expected, "a text was split into windows, or its words into other tokens"
    return bound.prepare(examples.take(range(len(examples))))


class _Words:
    """The words of records, one after the other."""

    def __init__(self, records: Sequence[Record], tokenizer: Tokenizer) -> None:
        self.frame = Frame.of(tokenizer)
        self.tokenizer = tokenizer
        self.kind = type(records[0])
        self.questions = cycle([record.question for record in records if isinstance(record, AnswerRecord)])
        self.words = cycle([word for record in records for word in _words(record)])

    def record(self, size: int) -> Record:
        """A record of this many tokens."""
        if self.kind is AnswerRecord:
            size = max(size, MIN_PAIR) - self.frame.pair_special_count
            question = self.until(size // 3, iter(next(self.questions).split()))
            left = size - sum(map(self.count, question))
            return AnswerRecord("0", " ".join(self.until(left, self.words)), " ".join(question), None)
        words = self.until(size - self.frame.special_count, self.words)
        return TagRecord.from_tokens(words, None) if self.kind is TagRecord else ClassifyRecord(" ".join(words))

    def until(self, size: int, words: Iterator[str]) -> list[str]:
        """The next words that have this many tokens together, or fewer where the words end."""
        chosen: list[str] = []
        for word in words if size else ():
            tokens = self.count(word)
            if 0 < tokens <= size:
                chosen.append(word)
                size -= tokens
            if not size:
                break
        return chosen

    def count(self, word: str) -> int:
        return len(self.tokenizer.encode(word, special=False).ids)


def _words(record: Record) -> Sequence[str]:
    match record:
        case TagRecord():
            return record.tokens
        case AnswerRecord():
            return record.context.split()
        case ClassifyRecord():
            return record.text.split()
    raise TypeError(type(record).__name__)
