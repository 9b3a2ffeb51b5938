"""Models that every network should be compared with: quick to train, quick to run, and often nearly as good.

`regard.train(data, preset="ngram", out=…)` trains one; its folder is a model folder like any other. To add a baseline:
a file in this folder, and an entry in `BASELINES`.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import InputError, did_you_mean, setting


@dataclass(frozen=True)
class Baseline:
    """What a baseline is, and what it can do."""

    name: str  # as in --preset
    about: str
    tasks: tuple[str, ...]
    takes_start: bool  # whether it is made from a pretrained model
    fitted: bool  # whether its weights are fitted at once, without training steps

    def from_model(self, start: object) -> str:
        """Its name with that of the pretrained model it is made from, for run.json and the model card."""
        return f"{self.name} from {start or 'minilm'}" if self.takes_start else self.name


BASELINES = {
    baseline.name: baseline
    for baseline in (
        Baseline(
            "ngram",
            "word and character n-grams with a linear model; for tags, features of words",
            ("classify", "pair", "tag"),
            takes_start=False,
            fitted=True,
        ),
        Baseline(
            "static",
            "the mean of one vector per token, taken from a pretrained model, with a small network",
            ("classify", "pair", "embed"),
            takes_start=True,
            fitted=False,
        ),
        Baseline(
            "probe",
            "a linear model on the vectors of a pretrained model, which stays as it is",
            ("classify", "pair"),
            takes_start=True,
            fitted=True,
        ),
    )
}


def is_baseline(name: object) -> bool:
    """Whether this is the name of a baseline."""
    return isinstance(name, str) and name in BASELINES


def baseline(name: str) -> Baseline:
    """The baseline of that name."""
    if name not in BASELINES:
        raise InputError(f'the baseline "{name:.80}" is not known.{did_you_mean(name[:80], BASELINES)}')
    return BASELINES[name]


def check_task(name: str, task: str) -> None:
    """Raise InputError if the baseline cannot do the task; it says which tasks it can do, and which baselines can."""
    chosen = baseline(name)
    if task in chosen.tasks:
        return
    others = [other.name for other in BASELINES.values() if task in other.tasks]
    fix = f"For {task}, use {setting('preset')} {' or '.join(others)}." if others else "Use a preset such as bert-mini."
    raise InputError(f"the baseline {name} is for {', '.join(chosen.tasks)}, but the task is {task}. {fix}")
