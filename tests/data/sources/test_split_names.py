"""Names of splits in file names and keys."""

import pytest

from regard.data.sources.split_names import split_of_key


@pytest.mark.parametrize(
    ("key", "split"),
    [("train", "train"), ("Training", "train"), ("dev", "valid"), ("oos_val", "valid"), ("test", "test"), (3, None)],
)
def test_split_of_key(key, split):
    assert split_of_key(key) == split
