"""What every record type has, and the registry of types."""

import pytest

from regard.data.records import PairRecord, record_type_names
from regard.data.records.record import all_roles, column_aliases, record_types, unregister_record
from regard.errors import InputError


def test_texts_and_values_of_a_record():
    record = PairRecord(" one ", "two", "yes", group="g")
    assert record.texts == (("first", " one "), ("second", "two"))
    assert record.input_texts == ("one", "two")
    assert record.values == [" one ", "two", "yes", "g"]


def test_the_registry():
    names = record_type_names()
    assert (names["classify"], names["embed"], names["masked"]) == ("classify", "pair", "text")
    assert {"text", "label", "group"} <= set(all_roles())
    assert "review" in column_aliases()["text"]
    assert record_types()["pair"] is PairRecord
    with pytest.raises(InputError, match='there is no record type "nothing"'):
        unregister_record("nothing")
