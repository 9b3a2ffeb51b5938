"""Data and settings that a task refuses, with the place of the row where there is one."""

from collections.abc import Callable
from typing import Any

import pytest

from regard.data.records import AnswerRecord, AnswerSpan, ClassifyRecord, PairRecord, Place, TagRecord, TranslateRecord
from regard.errors import DataError, InputError
from regard.tasks.answer import QuestionAnswering
from regard.tasks.classify import Classify
from regard.tasks.embed import Embed
from regard.tasks.language.masked import Masked
from regard.tasks.language.perplexity import SlidingPerplexity
from regard.tasks.tag import Tag
from regard.tasks.translate import Translate
from regard.text.learn import train_tokenizer_from_texts

PLACE = Place("rows.csv", 3)
TEXTS = [ClassifyRecord("x", "a"), ClassifyRecord("y", "b")]
SEVERAL = [ClassifyRecord("x", ("a",)), ClassifyRecord("y", ("a", "b"))]
NUMBERS = [ClassifyRecord("x", 1.0), ClassifyRecord("y", 2.5)]
QUESTIONS = [AnswerRecord("1", "a dog", "Who?", (AnswerSpan("dog", 2),))]
PAIRS = [PairRecord("a", "b")]
TRANSLATIONS = [TranslateRecord("a", "b")]


def masked_without_a_mask() -> Masked:
    return Masked.of(train_tokenizer_from_texts(["a dog sleeps"] * 20, kind="bpe", size=260))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Classify.from_records(TEXTS[:1]), r'one label only \("a"\)'),
        (lambda: Classify.from_records([ClassifyRecord("x", ())]), "no row of the training data has a label"),
        (lambda: QuestionAnswering.from_records([AnswerRecord("1", "a", "b", ())]), "no question with an answer"),
        (lambda: Tag.from_records([TagRecord.from_tokens(["a"], ["X"], scheme="plain")]), r'one tag only \("X"\)'),
        (lambda: Embed.from_records([PairRecord("a", "b", 1.0)] * 2), "same number"),
        (lambda: Embed(temperature=0.0), "temperature"),
        (masked_without_a_mask, r"no mask token.*another objective"),
        (lambda: Masked.from_records([]), "regard pretrain"),
        (lambda: SlidingPerplexity.from_records([]), "trained with regard pretrain"),
    ],
)
def test_records_that_teach_nothing(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("kind", "records", "settings"),
    [
        (Classify, SEVERAL, {"label_smoothing": 0.1}),
        (Classify, NUMBERS, {"label_smoothing": 0.1}),
        (Classify, NUMBERS, {"class_balance": "weights"}),
        (QuestionAnswering, QUESTIONS, {"class_balance": "weights"}),
        (QuestionAnswering, QUESTIONS, {"label_smoothing": 0.1}),
        (Embed, PAIRS, {"class_balance": "weights"}),
        (Embed, PAIRS, {"label_smoothing": 0.1}),
        (Translate, TRANSLATIONS, {"class_balance": "weights"}),
    ],
)
def test_settings_for_labels_where_there_are_none(kind: Any, records: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"is for labels, and .*Leave it out"):
        kind.from_records(records, **settings)


@pytest.mark.parametrize(
    ("kind", "records", "message"),
    [
        (Classify, [TEXTS[0], ClassifyRecord("y", 1.0, place=PLACE)], "of another kind than 'a'"),
        (Translate, [TranslateRecord("a", " ", place=PLACE)], "column target: this row has no translation"),
        (Translate, [TranslateRecord(" ", "a", place=PLACE)], "column source: this row has an empty source text"),
        (Embed, [PairRecord("a", "b", "yes", place=PLACE)], "is no number"),
        (Embed, [PairRecord("a", "b", 1.0), PairRecord("c", "d", place=PLACE)], "others have"),
    ],
)
def test_rows_that_do_not_fit(kind: Any, records: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        kind.from_records(records)
    assert (caught.value.file, caught.value.line) == ("rows.csv", 3)


@pytest.mark.parametrize(
    ("task", "record", "message"),
    [
        (
            Classify(names=("negative", "positive")),
            ClassifyRecord("x", "postive", place=PLACE),
            r'column label: the label "postive" is not .* Did you mean "positive"\?',
        ),
        (
            Tag(names=("O", "B-LOC", "I-LOC")),
            TagRecord.from_tokens(["in", "Rome"], ["O", "B-LOK"], place=PLACE),
            r'the tag "B-LOK" of word 1 "Rome" is not .* Did you mean "B-LOC"\?',
        ),
    ],
)
def test_unknown_labels_are_reported_with_the_nearest(small: Any, task: Any, record: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"^rows\.csv line 3.*{message}"):
        task.examples([record], small.preprocessing(), labeled=True)


def test_windows_too_short_for_a_token(small: Any) -> None:
    with pytest.raises(InputError, match="windows of 2 tokens are too small for a text and 2 special tokens"):
        Classify.from_records(TEXTS).examples(TEXTS, small.preprocessing(window=2), labeled=True)
