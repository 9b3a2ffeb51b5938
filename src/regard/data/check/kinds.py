"""Every kind of finding: its severity, its title and the suggested fix.

A title is a plural noun phrase, because a finding of several rows is shown as "3 duplicate rows; first: …".
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    severity: str
    title: str
    fix: str


KINDS: dict[str, Kind] = {
    # Files, and rows that the reader cannot use. If the reader suggests a fix, that one is shown.
    "unreadable": Kind("error", "files that cannot be read completely", "Repair the file, then check it again."),
    "bad-row": Kind("error", "rows that cannot be used", "Correct them, or skip them with --skip-bad FILE."),
    "excluded-row": Kind(
        "note", "rows that were not accepted in annotation", "Accept them in the annotation tool if they are needed."
    ),
    "wrong-columns": Kind("error", "rows with too many or too few columns", "Quote texts that contain the separator."),
    "unbalanced-quotes": Kind(
        "error", "quotes that are not closed, or closed too early", 'Write a quote inside a text twice ("").'
    ),
    "not-json": Kind("error", "lines that are not JSON", "Write one JSON object per line."),
    "not-utf8": Kind(
        "error", "bytes that are not UTF-8", "Save the file as UTF-8, or give its encoding: --encoding cp1252."
    ),
    "nul": Kind("error", "NUL characters", "Remove them (done by --fix)."),
    "surrogate": Kind("error", "halves of surrogate pairs", "Remove them (done by --fix)."),
    "missing-value": Kind("error", "missing values", "Fill them in, or remove the rows."),
    "bad-label": Kind("error", "labels in another form than the others", "Write them as in the other rows."),
    "bad-entity": Kind("error", "entities that cannot be read", 'Write {"start": 0, "end": 5, "label": "PER"}.'),
    "entity-overlap": Kind("error", "overlapping entities", "Keep one of them: each word has one tag."),
    "entity-outside": Kind("error", "entities outside their text", "Count code points from 0, end exclusive."),
    "entity-space": Kind("error", "entities that start or end with a space", "Exclude the space (done by --fix)."),
    "entity-mismatch": Kind(
        "error", "entities whose text is not at their position", "Count code points from 0, end exclusive."
    ),
    "broken-tags": Kind("error", "invalid tag sequences", "Start every entity with B- (done by --fix)."),
    "tag-count": Kind("error", "rows with different numbers of words and tags", "Give every word one tag."),
    "answer-position": Kind(
        "error", "answers that are not at their position", "Correct the start (done by --fix if it is unambiguous)."
    ),
    "bad-answer": Kind("error", "answers that cannot be used", "Give the text of the answer and its start."),
    # Texts.
    "empty-text": Kind("error", "empty texts", "Remove the rows (done by --fix)."),
    "mojibake": Kind("error", "texts with mojibake (UTF-8 decoded as Latin-1)", "Decode them again (done by --fix)."),
    "replacement-character": Kind(
        "warning", "texts with replacement characters (U+FFFD)", "Letters are lost: export the text again as UTF-8."
    ),
    "control-character": Kind(
        "warning", "texts with control or private-use characters", "Remove them (control characters: done by --fix)."
    ),
    "invisible-character": Kind("note", "texts with invisible characters", "Remove them (done by --fix)."),
    "markup": Kind("note", "texts with HTML tags or entities", "Extract the text from the HTML."),
    "other-script": Kind("warning", "texts in another script", "Remove them, unless they are intended."),
    # Labels.
    "single-label": Kind("error", "rows that all have the same label", "Add rows with at least one other label."),
    "missing-label": Kind("error", "rows without a label", "Label them, or remove them."),
    "similar-label": Kind("warning", "similar labels", "Use one spelling."),
    "unusual-label": Kind("warning", "unusual labels", "Give the rows a valid label, or remove them."),
    "unknown-label": Kind(
        "error", "labels that do not occur in the training data", "Add training rows with them, or correct the label."
    ),
    "label-not-in-split": Kind(
        "note", "training labels that do not occur in this split", "Scores on this split will not cover them."
    ),
    "imbalance": Kind(
        "warning", "imbalanced labels", "Collect more rows of the rare label, or train with --class-balance weights."
    ),
    "rare-label": Kind("warning", "labels with very few rows", "Collect more rows, or merge it with another label."),
    "too-many-labels": Kind(
        "warning", "labels, one for nearly every row", "Check the column, or choose another: --columns label=NAME."
    ),
    "joined-labels": Kind("warning", "labels that look like several labels in one", "Use --labels multi."),
    "ratings": Kind("note", "ratings that are read as classes", "Use --labels number."),
    "similarity": Kind("note", "pairs with numbers", "If they are similarity scores, use --task embed."),
    "label-outlier": Kind("warning", "numbers far from all others", "Correct the number, or remove the row."),
    # Duplicates.
    "duplicate": Kind("warning", "duplicate rows", "Keep one of them (done by --fix)."),
    "near-duplicate": Kind("note", "near-duplicate rows", "Keep one of them, or keep them in the same split."),
    "label-conflict": Kind("error", "texts with two different labels", "Decide for one label, or remove both rows."),
    "leak": Kind(
        "error", "rows that also occur in another split", "Remove them from one split; otherwise scores are inflated."
    ),
    "near-leak": Kind(
        "warning",
        "rows that occur almost identically in another split",
        "Remove them from one split; otherwise scores are inflated.",
    ),
    "duplicate-id": Kind("warning", "duplicate ids", "Give every question its own id."),
    # Entities and answers.
    "entity-inside-word": Kind(
        "warning", "entities that start or end inside a word", "Move the boundary to the end of the word."
    ),
    "no-entities": Kind("warning", "rows without any entity", "Check that the tags are in the right column."),
    "answer-inside-word": Kind(
        "note", "answers that start or end inside a word", "Move the boundary to the end of the word."
    ),
    # Pairs.
    "untranslated": Kind("warning", "translations identical to the source", "Translate them, or remove the rows."),
    "length-mismatch": Kind(
        "warning", "pairs of very different length", "Check that source and target belong together."
    ),
    # Lengths.
    "too-long": Kind(
        "note",
        "texts longer than the model's limit",
        "They are split into windows; a model with a higher limit reads them whole.",
    ),
    "unknown-tokens": Kind(
        "warning", "texts with many unknown tokens", "Use a model for this language, or learn a tokenizer."
    ),
}
