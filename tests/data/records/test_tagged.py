"""Tagged records: entities keep their place, and invalid spans are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.records import Entity, Place, TagRecord
from regard.errors import DataError

LABELS = st.sampled_from(["PER", "LOC", "a-b"])


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
def test_character_spans_come_back_as_they_were(options: tuple[str, list[Entity]]) -> None:
    text, spans = options
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
    ("spans", "message"),
    [
        ([(0, 6, "PER")], "0 to 6 .PER. is not a part of the text; expected 0 <= start < end <= 5"),
        ([(-1, 2, "PER")], "-1 to 2"),
        ([(2, 2, "PER")], "2 to 2"),
        ([(0, 3, "PER")], r"begins or ends with a space: 'ab '\. Write 0 to 2\."),
        ([(2, 3, "PER")], "Remove it: it contains only spaces"),
        ([(0, 4, "PER"), (3, 5, "LOC")], "3 to 5 .LOC. overlaps the one before, which ends at 4"),
    ],
)
def test_invalid_spans_are_refused(spans: list[tuple[int, int, str]], message: str) -> None:
    with pytest.raises(DataError, match=f"f line 2, column entities: .*{message}"):
        TagRecord.from_entities("ab cd", [Entity(*span) for span in spans], place=Place("f", 2))


def test_an_empty_token_is_reported() -> None:
    with pytest.raises(DataError, match="column tokens: token 1 is empty"):
        TagRecord.from_tokens(["a", ""], ["O", "O"])


def test_a_text_without_tags_is_cut_into_words_and_signs() -> None:
    record = TagRecord.from_text("Zoë's trip (May).")
    assert record.tokens == ("Zoë", "'", "s", "trip", "(", "May", ")", ".")
    assert record.tags is None
    assert record.entities == ()
