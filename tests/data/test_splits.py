"""Splits hold every record once, keep together what belongs together, and give every part its share."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.records import (
    AnswerRecord,
    AnswerSpan,
    ClassifyRecord,
    DocumentRecord,
    Entity,
    PairRecord,
    Record,
    TagRecord,
    TranslateRecord,
)
from regard.data.splits import group_records, split_records
from regard.errors import InputError

PARTS = {"train": 0.8, "valid": 0.1, "test": 0.1}


def records(count: int, labels: int = 2) -> list[ClassifyRecord]:
    return [ClassifyRecord(f"text {number}", f"label {number % labels}") for number in range(count)]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.none() | st.sampled_from("xyz")), min_size=1),
    st.integers(0, 5),
)
def test_every_record_is_in_one_part_with_all_that_belongs_to_it(rows: list[tuple[int, str, str]], seed: int) -> None:
    all_records = [ClassifyRecord(f"text {text}", label, group=group) for text, label, group in rows]
    if len(group_records(all_records)) == 1:
        with pytest.raises(InputError, match="in 1 group leave none"):
            split_records(all_records, {"train": 0.7, "valid": 0.3}, seed=seed)
        return
    try:
        result = split_records(all_records, {"train": 0.7, "valid": 0.3}, seed=seed)
    except InputError:  # one of few groups is nearly all
        assert max(map(len, group_records(all_records))) > len(rows) / 2
        return
    assert sorted(row for part in result.values() for row in part) == list(range(len(rows)))
    side = {row: name for name, part in result.items() for row in part}
    for one in range(len(rows)):
        for other in range(one):
            same = all_records[one].text == all_records[other].text
            together = all_records[one].group is not None and all_records[one].group == all_records[other].group
            assert not (same or together) or side[one] == side[other]


@given(st.integers(20, 400), st.integers(1, 12), st.integers(0, 3))
def test_every_label_is_divided_in_the_same_shares(count: int, labels: int, seed: int) -> None:
    all_records = records(count, labels)
    for name, rows in split_records(all_records, PARTS, seed=seed).items():
        share = PARTS[name]
        assert abs(len(rows) - share * count) <= 1
        label_counts = Counter(all_records[row].label for row in rows)
        for label, whole in Counter(record.label for record in all_records).items():
            assert abs(label_counts[label] - share * whole) <= 2


@pytest.mark.parametrize("seed", range(20))
def test_the_only_record_of_a_label_can_be_kept_for_training(seed: int) -> None:
    single = [ClassifyRecord(f"rare {number}", f"rare {number}") for number in range(4)]
    twice = [ClassifyRecord("twice", "rare 4"), ClassifyRecord("twice", "rare 4", group="b")]
    all_records = [*records(30), *single, *twice, PairRecord("a", "b", "rare 5")]
    split = split_records(all_records, {"train": 0.8, "valid": 0.2}, seed=seed, rare_labels="train")
    assert {all_records[row].label for row in split["valid"]} == {"label 0", "label 1"}  # type: ignore[attr-defined]
    assert 6 <= len(split["valid"]) <= 8
    few = [ClassifyRecord(f"text {number}", f"label {number}") for number in range(4)]
    assert all(split_records(few, {"train": 0.5, "valid": 0.5}, seed=seed, rare_labels="train").values())


def test_rare_labels_need_a_part() -> None:
    with pytest.raises(InputError, match='rare_labels is "dev", expected the name of a part: train, valid'):
        split_records(records(30), {"train": 0.8, "valid": 0.2}, rare_labels="dev")


def test_numbers_are_no_rare_labels() -> None:
    numbers = [ClassifyRecord(f"text {number}", float(number)) for number in range(10)]
    by_chance = split_records(numbers, {"train": 0.8, "valid": 0.2})
    assert split_records(numbers, {"train": 0.8, "valid": 0.2}, rare_labels="train") == by_chance


def test_a_seed_gives_the_same_parts_and_another_gives_others() -> None:
    all_records = records(200)
    assert split_records(all_records, seed=1) == split_records(all_records, seed=1)
    assert split_records(all_records, seed=1) != split_records(all_records, seed=2)


def test_records_hang_together_over_several_steps() -> None:
    all_records = [
        ClassifyRecord("a", group="x"),
        ClassifyRecord("b", group="y"),
        ClassifyRecord("a ", group="y"),  # the text of the first, the group of the second
        ClassifyRecord("c"),
    ]
    assert group_records(all_records) == [[0, 1, 2], [3]]
    assert group_records(all_records, lambda record: "one") == [[0, 1, 2, 3]]


def test_numbers_are_divided_by_their_size() -> None:
    all_records = [PairRecord(f"a {number}", "b", float(number)) for number in range(100)]
    valid = split_records(all_records, seed=3)["valid"]
    assert len(valid) == 10
    assert len({row // 20 for row in valid}) == 5


def test_a_key_of_ones_own_divides_too() -> None:
    all_records = [DocumentRecord(f"{number}") for number in range(100)]
    valid = split_records(all_records, stratify=lambda record: int(record.input_texts[0]) % 4, seed=0)["valid"]  # type: ignore[call-overload]
    assert max(Counter(row % 4 for row in valid).values()) <= 3
    assert len(split_records(all_records, stratify=False)["valid"]) == 10


def test_every_kind_of_record_is_divided() -> None:
    tagged: list[Record] = [
        TagRecord.from_entities(
            f"{number} Ada", [Entity(len(f"{number} "), len(f"{number} Ada"), "PER")] * (number % 2)
        )
        for number in range(40)
    ]
    questions: list[Record] = [
        AnswerRecord(str(number), f"c {number}", "q", (AnswerSpan("c", 0),) * (number % 2)) for number in range(40)
    ]
    pairs: list[Record] = [TranslateRecord(f"s {number}", "t") for number in range(40)]
    several: list[Record] = [ClassifyRecord(f"t {number}", ("a", "b")[: number % 3]) for number in range(40)]
    for kind in (tagged, questions, pairs, several):
        assert len(split_records(kind, {"train": 0.75, "valid": 0.25})["valid"]) == 10
    valid = split_records(tagged, {"train": 0.75, "valid": 0.25})["valid"]
    assert Counter(row % 2 for row in valid) == {0: 5, 1: 5}


@pytest.mark.parametrize(
    ("count", "parts", "message"),
    [
        (0, PARTS, "there is no record to split"),
        (9, {"train": 0.9}, "add up to 0.9; expected 1"),
        (9, {"train": 1.2, "valid": -0.2}, "fractions above 0"),
        (9, {}, "fractions above 0"),
        (2, PARTS, '2 records in 2 groups leave none for "'),
    ],
)
def test_invalid_arguments_are_refused(count: int, parts: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        split_records(records(count), parts)


def test_sentences_of_many_documents_are_divided_by_document() -> None:
    documents = [str(number // 4) for number in range(160)]
    records = [TagRecord.from_tokens(["word", name], ["O", "O"], document=name) for name in documents]
    parts = split_records(records, {"train": 0.75, "valid": 0.25})
    sides = [{records[row].document for row in rows} for rows in parts.values()]
    assert not sides[0] & sides[1]
    assert [len(rows) for rows in parts.values()] == [120, 40]
    few = split_records(records[:80], {"train": 0.75, "valid": 0.25}, group=lambda record: None)
    assert [len(rows) for rows in few.values()] == [60, 20]
