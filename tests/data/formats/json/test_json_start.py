"""The first bytes of a JSON file show where its rows are."""

from regard.data.formats.json.json_start import has_first_item, is_nested, too_many_parts


def test_nested_files():
    assert is_nested(b'[{"text": "a"}]')
    assert is_nested(b'{"version": "1.1", "data": [{"title": "a"}]}')
    assert not is_nested(b'{"text": "a"}\n{"text": "b"}\n')


def test_a_first_item_must_be_complete():
    assert has_first_item(b'[{"text": "a"}, {"te')
    assert not has_first_item(b'[{"text": "a')
    assert not too_many_parts("[[]]")
