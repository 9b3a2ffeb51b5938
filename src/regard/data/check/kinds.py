"""Every kind of finding: how grave it is, what it is called, and the way to fix it."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    severity: str
    title: str
    fix: str


KINDS: dict[str, Kind] = {
    # A file, or a row that the reader cannot use. The reader's own fix comes first where it has one.
    "unreadable": Kind("error", "the file cannot be read to its end", "Mend the file, then check it again."),
    "bad-row": Kind("error", "rows that cannot be used", "Mend them, or leave them out with --skip-bad FILE."),
    "left-out": Kind(
        "note", "rows that their annotator did not accept", "Nothing to do, unless they should be used: accept them."
    ),
    "wrong-columns": Kind("error", "rows with too many or too few columns", "Quote texts that hold the separator."),
    "quotes": Kind(
        "error", "quotes that are not closed, or closed too early", 'Write a quote inside a text twice ("").'
    ),
    "not-json": Kind("error", "lines that are not JSON", "Write one object a line."),
    "not-utf8": Kind(
        "error", "bytes that are not UTF-8", "Write the byte in UTF-8; or name the file's encoding: --encoding cp1252."
    ),
    "nul": Kind("error", "NUL characters", "Take them out; --fix does."),
    "surrogate": Kind("error", "halves of surrogate pairs", "Write whole characters; --fix takes halves out."),
    "missing-value": Kind("error", "values that are missing", "Fill them in, or leave the rows out."),
    "bad-label": Kind("error", "labels that cannot be read like the rest", "Write them as in the other rows."),
    "entity": Kind("error", "entities that cannot be read", 'Write {"start": 0, "end": 5, "label": "PER"}.'),
    "entity-overlap": Kind("error", "entities that overlap", "Keep one of them: a word has one tag."),
    "entity-outside": Kind("error", "entities outside of their text", "Count code points from 0, end exclusive."),
    "entity-space": Kind("error", "entities with a space at an edge", "Move the edge to the word; --fix does."),
    "entity-text": Kind("error", "entities that are not where they say", "Count code points from 0, end exclusive."),
    "broken-tags": Kind("error", "tags that break their scheme", "Open every entity with B-; --fix does."),
    "tag-count": Kind("error", "as many tags as words are needed", "Give every word one tag."),
    "answer-place": Kind(
        "error", "answers that are not where they say", "Mend the start; --fix does where there is one."
    ),
    "answer": Kind("error", "answers that cannot be used", "Give the text of the answer and its start."),
    # Texts.
    "empty-text": Kind("error", "texts that are empty or only space", "Leave the rows out; --fix does."),
    "mojibake": Kind("error", "UTF-8 that was read as Latin-1", "Decode it once more; --fix does."),
    "replacement": Kind(
        "warning", "replacement characters (U+FFFD): letters are lost", "Fetch the text again as UTF-8."
    ),
    "bom": Kind("note", "byte order marks", "Save it as UTF-8 without BOM; --fix does."),
    "control": Kind("warning", "control or private characters", "Take them out; --fix takes out control characters."),
    "invisible": Kind("note", "invisible characters", "Take them out; --fix does."),
    "markup": Kind("note", "HTML tags or entities", "Take the text out of the HTML first."),
    "escaped": Kind("note", "escapes that were never resolved", "Decode the escapes before writing the file."),
    "run": Kind("warning", "one character over and over", "Look at the row; cut the run short or leave it out."),
    "header-row": Kind("error", "the header once more among the rows", "Leave the row out; --fix does."),
    "other-script": Kind(
        "warning", "texts in another script than the rest", "Leave them out, or keep them on purpose."
    ),
    "other-language": Kind(
        "warning", "texts in another language than the rest", "Leave them out, or keep them on purpose."
    ),
    "mixed-script": Kind(
        "warning", "words that mix scripts", "Write the word in one script: the letters only look alike."
    ),
    # Labels.
    "one-label": Kind("error", "every row has the same label", "A model needs at least two to learn a difference."),
    "missing-label": Kind("error", "rows without a label among rows with one", "Label them, or leave them out."),
    "near-label": Kind("warning", "labels that look like one", "Write both in the same way."),
    "odd-label": Kind("warning", "labels unlike the others", "Give the rows a real label, or leave them out."),
    "unknown-label": Kind("error", "labels that train does not have", "Add rows with them to train, or fix the label."),
    "unseen-label": Kind("note", "labels of train that are in no row here", "Its score will say nothing about them."),
    "imbalance": Kind(
        "warning", "labels are very uneven", "Gather more of the rare one, or train with --class-balance weights."
    ),
    "rare-label": Kind("warning", "labels with very few rows", "Gather more rows of it, or join it with another."),
    "many-labels": Kind(
        "warning", "nearly every row has a label of its own", "Is it the right column? Say --columns label=NAME."
    ),
    "joined-labels": Kind("warning", "labels that look like several in one", "Use --labels multi."),
    "similarity": Kind("note", "pairs with numbers", "If they say how similar the texts are, use --task embed."),
    "repeated-label": Kind("note", "a label twice in one row", "Write it once."),
    "label-outlier": Kind(
        "warning", "numbers far away from the rest", "Is the number right? Mend it or leave the row out."
    ),
    # The same thing twice.
    "duplicate": Kind("warning", "rows that are there twice", "Keep one of them; --fix does."),
    "near-duplicate": Kind(
        "note", "rows that are nearly the same", "Keep one of them, or keep them on one side of a split."
    ),
    "label-conflict": Kind("error", "the same text with two labels", "Decide for one, or leave both out."),
    "leak": Kind("error", "rows that train has too", "Take them out of one side, or scores are too good."),
    "near-leak": Kind(
        "warning", "rows that train has nearly word for word", "Take them out of one side, or scores are too good."
    ),
    "duplicate-id": Kind("warning", "an id that is there twice", "Give every question an id of its own."),
    # Tags and answers.
    "entity-cut": Kind("warning", "entities that begin or end inside a word", "Move the edge to the end of the word."),
    "entity-edge": Kind("note", "entities with punctuation at an edge", "Leave the punctuation out of the entity."),
    "long-entity": Kind("note", "entities of very many words", "Look whether its end is right."),
    "no-entities": Kind("warning", "no row has an entity", "Are the tags in the right column?"),
    "answer-cut": Kind("note", "answers that begin or end inside a word", "Move the edge to the end of the word."),
    "answer-edge": Kind("note", "answers with a space at an edge", "Leave the space out of the answer."),
    # Pairs.
    "untranslated": Kind("warning", "translations that are the source itself", "Translate them, or leave them out."),
    "unequal": Kind("warning", "pairs of wildly unequal length", "Look whether the lines still belong together."),
    "same-pair": Kind("note", "pairs of one text twice", "Is the second text the right column?"),
    # Lengths.
    "too-long": Kind(
        "note", "texts longer than the model", "They are read in windows; a model with more places reads them whole."
    ),
    "unknown-tokens": Kind(
        "warning", "the tokenizer does not know many words", "Take a model for this language, or learn a tokenizer."
    ),
}
