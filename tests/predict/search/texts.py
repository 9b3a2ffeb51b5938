"""Texts to search, and the matches of one query."""

from __future__ import annotations

from pathlib import Path

from regard.predict.search.passages import Match

TEXTS = ["a lovely film", "a dull film", "the worst of the year", "great and warm", "cold and dull", "a lovely film"]


def single(results: list[Match] | list[list[Match]]) -> list[Match]:
    return [match for match in results if isinstance(match, Match)]


def caches(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.vectors.npz"))
