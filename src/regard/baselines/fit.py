"""Fit the weights of a baseline that needs no training steps."""

from __future__ import annotations

from regard.baselines.ngram import Report, fit_ngram
from regard.baselines.tagger import fit_tagger
from regard.data.batching.examples import Examples
from regard.model.bag import BagNetwork
from regard.model.network import Network
from regard.tasks.classify import Classify
from regard.tasks.tag import Tag
from regard.tasks.task import Task


def fit_baseline(network: Network, task: Task, examples: Examples, *, seed: int, report: Report) -> None:
    """Fit the linear model of the task to the examples, and put its weights into the network."""
    assert isinstance(network, BagNetwork)
    device = network.encoder.tokens.weight.device
    network.cpu()
    if isinstance(task, Tag):
        fit_tagger(network, task, examples, seed=seed, report=report)
    else:
        assert isinstance(task, Classify)
        fit_ngram(network, task, examples, seed=seed, report=report)
    network.to(device)
