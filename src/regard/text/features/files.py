"""The file of a tokenizer of features. To add a kind: a class with `from_settings`, and a line in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import FolderError, did_you_mean
from regard.foreign import read_json_value
from regard.text.features.encoding import FeatureBackend
from regard.text.features.ngrams import Ngrams
from regard.text.features.words import WordFeatures

KINDS: dict[str, Callable[[Mapping[str, Any]], FeatureBackend]] = {
    "ngrams": Ngrams.from_settings,
    "words": WordFeatures.from_settings,
}


def read_features(path: Path) -> FeatureBackend:
    """The tokenizer of a file features.json."""
    settings = read_json_value(path)
    kind = settings.get("type") if isinstance(settings, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise FolderError(f'{path}: the type "{kind!s:.80}" is not known.{did_you_mean(str(kind)[:80], KINDS)}')
    try:
        return KINDS[kind](settings)
    except (KeyError, TypeError, ValueError) as error:
        raise FolderError(f"{path} is damaged: {error!r:.200}. Copy it again.") from error
