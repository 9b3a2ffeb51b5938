"""The trials of a search: which is the best, and whether anything was searched at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.data.check.page import format_duration
from regard.errors import InputError, setting

FINAL = 1.3  # seconds of the final training, as a multiple of the longest trial
ENOUGH = 10  # trials of a search that is worth its name


class Trial(NamedTuple):
    """Settings that were tried, and their score on the validation rows; None if it took too long."""

    number: int
    settings: dict[str, Any]
    score: float | None
    seconds: float
    full_seconds: float | None = None  # expected without the limit, of a training that was shortened


def best_trial(trials: Sequence[Trial], *, higher: bool) -> Trial:
    """The trial with the best score; of equal ones the first."""
    scored = [trial for trial in trials if trial.score is not None]
    if not scored:
        raise InputError(f"no trial has ended within the time. Give more with {setting('search')}.")
    return max(scored, key=lambda trial: ((trial.score or 0.0) * (1 if higher else -1), -trial.number))


def nothing_searched(
    trials: Sequence[Trial],
    *,
    epochs: Sequence[float] = (),
    default_epochs: float | None = None,
    max_trials: int | None = None,
) -> str | None:
    """A note if only the first trial, which has the default settings, has a score; with the time that others need.

    epochs: those that are searched, which make trials longer or shorter than the first.
    """
    if len([trial for trial in trials if trial.score is not None]) != 1 or trials[0].score is None:
        return None
    if max_trials == 1:
        return "nothing was searched: one trial was asked for, which has the default settings"
    first = trials[0]
    full = first.full_seconds or first.seconds
    factors = [count / default_epochs for count in epochs] if default_epochs else []
    mean_factor, max_factor = (sum(factors) / len(factors), max(factors)) if factors else (1.0, 1.0)
    shortened = "" if first.full_seconds is None else " and fewer steps"
    second, enough = (2 + FINAL) * full, (ENOUGH * mean_factor + FINAL * max_factor) * full
    return (
        f"nothing was searched: the time was enough for one trial only, with the default settings{shortened}. A second "
        f"trial needs about {format_duration(second)} in all, {ENOUGH} trials about {format_duration(enough)}"
    )
