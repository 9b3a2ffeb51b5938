"""The mean of the weights of several trainings, as one network (a "model soup").

In plain terms, it works as follows:
1. The same network is trained several times, from the same initial weights, with other random numbers: another order of
   the rows, another dropout.
2. The trained networks are close to each other, and so is the mean of their weights, which has less of the noise of
   each.
3. The mean is scored, calibrated and written as if it had been trained. It costs no more than one network.

Wortsman et al., "Model soups", 2022 (https://arxiv.org/abs/2203.05482).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.checkpoint.files import read_json
from regard.checkpoint.folder import read_folder
from regard.errors import FolderError, InputError, setting
from regard.training.job import TrainingJob
from regard.training.run import TrainingInputs


@dataclass(frozen=True)
class MeanWeights:
    """The folders whose mean a network gets in place of training.

    folders: trained on the training rows; their mean is scored on the validation rows.
    all_rows: of the same trainings on all rows; if there are some, the model that is written is their mean.
    """

    folders: Sequence[Path]
    all_rows: Sequence[Path] = ()

    def in_place_of_training(self, inputs: TrainingInputs, refit: Callable[[], TrainingInputs]) -> TrainingInputs:
        """The inputs of a run without steps, whose network gets the mean; `refit` makes those for all rows."""
        if inputs.settings.lora.rank:
            raise InputError(f"{setting('lora.rank')} was given, but weights of LoRA are not averaged. Leave it out.")
        untrained = replace(_with_mean(inputs, self.folders), details=lambda _: self.details())
        if not self.all_rows:
            return untrained
        return replace(untrained, refit=lambda: _with_mean(refit(), self.all_rows))

    def details(self) -> dict[str, Any]:
        """Fields of run.json: how many trainings there were, and how long each was; the settings are theirs."""
        runs = [read_json(folder, "run.json") for folder in self.folders]
        shared = {name: value for name, value in runs[0].items() if name in ("settings", "contrastive", "similarity")}
        seconds = round(sum(run["done"]["seconds"] for run in runs), 3)
        return {**shared, "mean_of": {"trainings": len(runs), "steps": runs[0]["done"]["steps"], "seconds": seconds}}


def _with_mean(inputs: TrainingInputs, folders: Sequence[Path]) -> TrainingInputs:
    settings = replace(inputs.settings, repeats=1)  # the trainings themselves may have been repeated
    return replace(inputs, settings=settings, initialize=partial(set_mean_weights, folders=folders), fitted=True)


def set_mean_weights(job: TrainingJob, folders: Sequence[Path]) -> None:
    """Set the weights of the network of a job to the mean of those in the folders."""
    mean = mean_weights(folders)
    if mean.keys() != job.network.state_dict().keys():
        raise FolderError(f"{folders[0]} has another network than the one to be averaged. Train it again.")
    job.network.load_state_dict(mean)


@torch.no_grad()
def mean_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of the networks in these folders; buffers are those of the first."""
    network = read_folder(folders[0]).network
    mean = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    averaged = dict(network.named_parameters()).keys() & mean.keys()
    for count, folder in enumerate(folders[1:], 2):
        other = read_folder(folder).network.state_dict()
        if other.keys() != mean.keys() or any(other[name].shape != mean[name].shape for name in mean):
            raise FolderError(f"{folder} has another network than {folders[0]}; their weights have no mean.")
        for name in averaged:
            mean[name] += (other[name] - mean[name]) / count
    return mean
