"""Names of the splits of a dataset, as they occur in file names, JSON keys and dicts of tables."""

from __future__ import annotations

from typing import Any

SPLITS = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test",),
}


def split_of_key(key: Any) -> str | None:
    """The split that a key such as "dev" names. CLINC's out-of-scope rows ("oos_train") belong to the same split."""
    name = str(key).lower().removeprefix("oos_")
    return next((split for split, names in SPLITS.items() if name in names), None)
