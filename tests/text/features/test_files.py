"""A kind of features is added in one place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.errors import FolderError
from regard.text.features.files import KINDS, read_features
from regard.text.features.words import WordFeatures


def test_kinds_are_read_by_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "features.json"
    file.write_text(json.dumps({"type": "reversed", "features": ["a"]}))
    with pytest.raises(FolderError, match='"reversed" is not known'):
        read_features(file)
    monkeypatch.setitem(KINDS, "reversed", WordFeatures.from_settings)
    assert read_features(file).size == 2
