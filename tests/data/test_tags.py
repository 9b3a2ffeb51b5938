"""Tag schemes are recognized and converted to IOB2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.records import Place, TagRecord
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
            adjacent = bool(tags) and tags[-1] != "O" and tags[-1][2:] == label
            tags += [f"{'B' if adjacent else 'I'}-{label}"] + [f"I-{label}"] * (length - 1)
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
    expected = tuple(written(runs, "iob2"))
    assert to_iob2(tags, scheme) == expected
    assert to_iob2(tags, infer_scheme([tags])) == expected


@given(sentences())
def test_entities_are_the_runs(runs: list[tuple[int, str | None]]) -> None:
    results, at = [], 0
    for length, label in runs:
        if label is not None:
            results.append((at, at + length, label))
        at += length
    assert entities(written(runs, "iob2")) == results


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
def test_schemes_are_recognized(tags: list[str], scheme: str) -> None:
    assert infer_scheme([tags]) == scheme


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        (["O", "I-PER"], "iob2", r'"I-PER" continues an entity, but comes after "O"\. Open it with B-'),
        (["B-PER", "I-LOC"], "iob2", r'"I-LOC" continues .* after "B-PER"'),
        (["B-PER", "O"], "iobes", '"O" comes after "B-PER", but that entity is not closed'),
        (["B-PER", "B-PER"], "iobes", '"B-PER" opens an entity, but the one of "B-PER" is not closed'),
        (["O", "B-PER"], "bilou", '"B-PER" is the last tag of the sentence, but its entity is not closed'),
        (["E-PER", "O"], "iobes", '"E-PER" continues an entity, but comes after "O"'),
        (["S-PER", "E-PER"], "iobes", '"E-PER" continues an entity, but comes after "S-PER"'),
        (["X-PER", "O"], "iob2", '"X-PER" is no tag of the scheme iob2; expected "O", "B-…", "I-…"'),
        (["", "O"], "iob2", '"" is no tag'),
        (["B-PER"], "iob2", "2 tokens but 1 tag; expected one tag per token"),
    ],
)
def test_broken_tags_are_reported(tags: list[str], scheme: str, message: str) -> None:
    with pytest.raises(DataError, match=f"f.conll line 3, column tags: (token . .*: )?{message}"):
        TagRecord.from_tokens(["w0", "w1"], tags, scheme=scheme, place=Place("f.conll", 3))


def test_schemes_have_other_names() -> None:
    assert [normalize_scheme(name) for name in ("BIO", "bioes", "IOB", "IOBES")] == ["iob2", "iobes", "iob1", "iobes"]
    with pytest.raises(InputError, match='"iob3" is not a tag scheme'):
        normalize_scheme("iob3")
