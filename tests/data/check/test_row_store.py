"""The store has a hash, a place and an excerpt of every row."""

from __future__ import annotations

from regard.data.check.row_store import RowStore, stable_hash
from regard.data.check.rules.checked_row import checked_row
from regard.data.check.rules.minhash import BYTES
from regard.data.records import ClassifyRecord, Place


def test_hashes_places_and_excerpts() -> None:
    store = RowStore()
    for line, text in enumerate(["Good soup.", "good soup", "Good soup."], 2):
        store.check_row(checked_row(ClassifyRecord(text, "pos", place=Place("a.csv", line)), "train"))
    assert len(store) == store.sketched_rows == 3
    assert store.input_hashes[0] == store.input_hashes[2] != store.input_hashes[1]
    assert store.normalized_hashes[0] == store.normalized_hashes[1]
    assert store.place(1) == Place("a.csv", 3)
    assert (store.split(1), store.text(1), store.text(3)) == ("train", "good soup", "")
    assert store.sketches().shape == (3, BYTES)


def test_hash_is_stable() -> None:
    assert stable_hash("text") == stable_hash("text") != stable_hash("Text")
    assert stable_hash("\ud83d") > 0
