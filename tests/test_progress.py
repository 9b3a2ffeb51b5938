"""The one type of progress that every function reports."""

from regard.progress import Progress


def test_defaults():
    progress = Progress("rows", 3)
    assert (progress.total, progress.values) == (None, {})
    assert progress.values is not Progress("rows", 3).values
