"""A record as the checks see it, whatever its task: its texts by role, what it says, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.records import (
    AnswerRecord,
    ClassifyRecord,
    MinimalRecord,
    PairRecord,
    Place,
    Record,
    TagRecord,
    TranslateRecord,
)


@dataclass(slots=True)
class CheckedRow:
    """`said` is what the model reads, `told` what a person has said about it."""

    record: Record
    split: str
    place: Place
    texts: tuple[tuple[str, str], ...]
    input_text: str
    annotation: str


def checked_row(record: Record, split: str) -> CheckedRow:
    match record:
        case PairRecord():
            texts: tuple[tuple[str, str], ...] = (("first", record.first), ("second", record.second))
            told = repr(record.label)
        case AnswerRecord():
            texts = (("question", record.question), ("context", record.context))
            told = repr(record.answers)
        case TranslateRecord():
            texts = (("source", record.source), ("target", record.target))
            return CheckedRow(record, split, record.place, texts, record.source.strip(), record.target)
        case MinimalRecord():
            texts, told = (("good", record.good), ("bad", record.bad)), repr(record.kind)
        case TagRecord():
            texts = (("text", record.text),)
            told = " ".join(record.tags or ())
        case ClassifyRecord():
            texts, told = (("text", record.text),), repr(record.label)
        case _:
            texts, told = (("text", record.text),), ""
    said = texts[0][1].strip() if len(texts) == 1 else "\x1f".join(text.strip() for _, text in texts)
    return CheckedRow(record, split, record.place, texts, said, told)
