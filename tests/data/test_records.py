"""Entities keep their place whichever way they were written; what cannot be is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.records import Entity, Place, TagRecord
from regard.data.tags import entities, infer_scheme, normalize_scheme, to_iob2
from regard.errors import DataError, InputError

LABELS = st.sampled_from(["PER", "LOC", "a-b"])


@st.composite
def sentences(draw: st.DrawFn) -> list[tuple[int, str | None]]:
    """Runs of words: how many, and the entity they are, or None."""
    return draw(st.lists(st.tuples(st.integers(1, 4), st.none() | LABELS), max_size=8))


def written(runs: list[tuple[int, str | None]], scheme: str) -> list[str]:
    """The tags of runs of words in a scheme."""
    tags: list[str] = []
    for length, label in runs:
        if label is None:
            tags += ["O"] * length
        elif scheme == "iob1":
            beside = bool(tags) and tags[-1] != "O" and tags[-1][2:] == label
            tags += [f"{'B' if beside else 'I'}-{label}"] + [f"I-{label}"] * (length - 1)
        elif scheme == "iob2":
            tags += [f"B-{label}"] + [f"I-{label}"] * (length - 1)
        else:
            last, single = ("E", "S") if scheme == "iobes" else ("L", "U")
            inner = [f"I-{label}"] * (length - 2)
            tags += [f"{single}-{label}"] if length == 1 else [f"B-{label}", *inner, f"{last}-{label}"]
    return tags


@given(sentences(), st.sampled_from(["iob1", "iob2", "iobes", "bilou"]))
def test_every_scheme_becomes_the_same_iob2(runs: list[tuple[int, str | None]], scheme: str) -> None:
    tags = written(runs, scheme)
    wanted = tuple(written(runs, "iob2"))
    assert to_iob2(tags, scheme) == wanted
    assert to_iob2(tags, infer_scheme([tags])) == wanted


@given(sentences())
def test_entities_are_the_runs(runs: list[tuple[int, str | None]]) -> None:
    found, at = [], 0
    for length, label in runs:
        if label is not None:
            found.append((at, at + length, label))
        at += length
    assert entities(written(runs, "iob2")) == found


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, list[Entity]]:
    """A text and stretches of it that do not overlap and have no space at their edges."""
    text = draw(st.text(max_size=60))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [
        Entity(start, end, draw(LABELS)) for start, end in pairs if text[start:end] == text[start:end].strip() != ""
    ]


@given(marked())
def test_character_spans_come_back_as_they_were(given: tuple[str, list[Entity]]) -> None:
    text, spans = given
    record = TagRecord.from_entities(text, spans)
    assert record.entities == tuple(spans)
    assert record.text == text
    assert "".join("".join(record.tokens).split()) == "".join(text.split())
    again = TagRecord.from_tokens(record.tokens, record.tags)
    assert [entity.label for entity in again.entities] == [entity.label for entity in spans]


@given(st.lists(st.text(min_size=1, max_size=8), max_size=10))
def test_tokens_slice_back_from_the_text(tokens: list[str]) -> None:
    record = TagRecord.from_tokens(tokens, None)
    assert record.tokens == tuple(tokens)
    assert (record.tags, record.entities) == (None, ())


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["I-PER", "O"], "iob1"),
        (["I-PER", "B-PER"], "iob1"),
        (["B-PER", "O"], "iob2"),
        (["B-PER", "E-PER"], "iobes"),
        (["S-PER"], "iobes"),
        (["U-PER"], "bilou"),
        (["NOUN", "VERB"], "plain"),
        (["O", "O"], "iob2"),
        (["B-PER", "O", "I-PER"], "iob2"),  # broken, and no IOB1 either
    ],
)
def test_schemes_are_told_apart(tags: list[str], scheme: str) -> None:
    assert infer_scheme([tags]) == scheme


@pytest.mark.parametrize(
    ("tags", "scheme", "says"),
    [
        (["O", "I-PER"], "iob2", r'"I-PER" carries on an entity, but stands after "O"\. Open it with B-'),
        (["B-PER", "I-LOC"], "iob2", r'"I-LOC" carries on .* after "B-PER"'),
        (["B-PER", "O"], "iobes", '"O" stands after "B-PER", but the entity of that is not closed'),
        (["B-PER", "B-PER"], "iobes", '"B-PER" opens an entity, but the one of "B-PER" is not closed'),
        (["O", "B-PER"], "bilou", '"B-PER" is the last tag of the sentence, but its entity is not closed'),
        (["E-PER", "O"], "iobes", '"E-PER" carries on an entity, but stands after "O"'),
        (["S-PER", "E-PER"], "iobes", '"E-PER" carries on an entity, but stands after "S-PER"'),
        (["X-PER", "O"], "iob2", '"X-PER" is no tag of the scheme iob2; expected "O", "B-…", "I-…"'),
        (["", "O"], "iob2", '"" is no tag'),
        (["B-PER"], "iob2", "2 tokens but 1 tag; expected one tag per token"),
    ],
)
def test_broken_tags_are_said(tags: list[str], scheme: str, says: str) -> None:
    with pytest.raises(DataError, match=f"f.conll line 3, column tags: (token . .*: )?{says}"):
        TagRecord.from_tokens(["w0", "w1"], tags, scheme=scheme, place=Place("f.conll", 3))


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        ([(0, 6, "PER")], "0 to 6 .PER. is not a part of the text; expected 0 <= start < end <= 5"),
        ([(-1, 2, "PER")], "-1 to 2"),
        ([(2, 2, "PER")], "2 to 2"),
        ([(0, 3, "PER")], r"begins or ends with a space: 'ab '\. Write 0 to 2\."),
        ([(2, 3, "PER")], "Remove it: it contains only spaces"),
        ([(0, 4, "PER"), (3, 5, "LOC")], "3 to 5 .LOC. overlaps the one before, which ends at 4"),
    ],
)
def test_spans_that_cannot_be_are_said(spans: list[tuple[int, int, str]], says: str) -> None:
    with pytest.raises(DataError, match=f"f line 2, column entities: .*{says}"):
        TagRecord.from_entities("ab cd", [Entity(*span) for span in spans], place=Place("f", 2))


def test_an_empty_token_is_said() -> None:
    with pytest.raises(DataError, match="column tokens: token 1 is empty"):
        TagRecord.from_tokens(["a", ""], ["O", "O"])


def test_schemes_have_other_names() -> None:
    assert [normalize_scheme(name) for name in ("BIO", "bioes", "IOB", "IOBES")] == ["iob2", "iobes", "iob1", "iobes"]
    with pytest.raises(InputError, match='"iob3" is not a tag scheme'):
        normalize_scheme("iob3")


def test_a_text_without_tags_is_cut_into_words_and_signs() -> None:
    record = TagRecord.from_text("Zoë's trip (May).")
    assert record.tokens == ("Zoë", "'", "s", "trip", "(", "May", ")", ".")
    assert record.tags is None
    assert record.entities == ()
