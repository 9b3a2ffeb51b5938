"""The best trial, and a note if there is nothing to choose from."""

from __future__ import annotations

import pytest

from regard.errors import InputError
from regard.selection.trials import Trial, best_trial, nothing_searched


def test_the_best_trial() -> None:
    trials = [Trial(0, {}, 0.5, 1.0), Trial(1, {"lr": 1}, 0.7, 1.0), Trial(2, {"lr": 2}, None, 1.0)]
    assert best_trial(trials, higher=True).number == 1
    assert best_trial(trials, higher=False).number == 0
    assert best_trial([Trial(0, {}, 0.5, 1.0), Trial(1, {}, 0.5, 1.0)], higher=True).number == 0
    with pytest.raises(InputError, match="no trial has ended"):
        best_trial(trials[2:], higher=True)


def test_one_trial_is_no_search() -> None:
    first = Trial(0, {}, 0.5, 100.0)
    note = nothing_searched([first])
    assert note is not None
    assert note.endswith(
        "A second trial needs about 5.5 min in all, 10 trials about 19 min"
    )  # 3.3 and 11.3 times 100 s
    assert nothing_searched([first, Trial(1, {"lr": 1}, None, 50.0)]) == note  # others were stopped
    assert nothing_searched([first, Trial(1, {"lr": 1}, 0.4, 50.0)]) is None
    assert "one trial was asked for" in (nothing_searched([first], max_trials=1) or "")


def test_trials_with_more_epochs_take_longer() -> None:
    trials = [Trial(0, {}, 0.5, 100.0)]
    note = nothing_searched(trials, epochs=[1, 2, 3, 4, 6], default_epochs=2) or ""
    assert note.endswith("10 trials about 33 min")  # 16 and 1.3 * 3 times 100 s


def test_a_first_trial_that_was_shortened_counts_with_its_whole_length() -> None:
    note = nothing_searched([Trial(0, {"steps": 10}, 0.5, 10.0, 100.0)]) or ""
    assert "with the default settings and fewer steps. A second trial needs about 5.5 min" in note
