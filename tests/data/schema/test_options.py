"""Options for reading data are checked before a file is opened."""

import pytest

from regard.data.schema.options import read_options
from regard.errors import InputError


def test_names_are_normalized():
    options = read_options(columns={"label": ["a", "b"]}, task="embed", labels="multi")
    assert (options.task, options.labels, options.one_hot) == ("pair", "multi", ("a", "b"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "cvs"}, '"cvs" is not known.*csv'),
        ({"labels": "many"}, '"many" is not known'),
        ({"columns": {"label": ["a", "b"]}, "labels": "number"}, "numbers are read from one column"),
    ],
)
def test_unknown_names_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        read_options(**options)
