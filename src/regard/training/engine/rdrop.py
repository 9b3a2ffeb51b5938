"""R-Drop: two passes with different dropout should predict the same.

In plain terms, it works as follows:
1. Every sequence is in a batch twice, so that each copy gets its own dropout.
2. The loss of the task is the mean over both copies.
3. The symmetric Kullback-Leibler divergence of the two predictions, (KL(p, q) + KL(q, p)) / 2, is averaged over all
   positions with a target, multiplied by a weight, and added.

Wu et al., "R-Drop: regularized dropout for neural networks", 2021 (https://arxiv.org/abs/2106.14448). The paper adds
the losses of the two passes instead of averaging them: its weight of 5 for translation is 2.5 here.
"""

from __future__ import annotations

from torch import Tensor

from regard.data.batching.examples import Inputs
from regard.errors import InputError, setting
from regard.model.transformer import Output
from regard.tasks.task import Loss, Task


def check_rdrop(task: Task, weight: float) -> None:
    """Raise InputError if R-Drop was requested for a task that does not predict classes."""
    if weight and not task.predicts_classes:
        raise InputError(
            f"{setting('rdrop', weight)} compares the probabilities of classes, and this task ({task.name}) predicts "
            "none. Leave it out."
        )


def rdrop_loss(task: Task, output: Output, inputs: Inputs, weight: float) -> Loss:
    """The loss of a batch that has every sequence twice (`Inputs.twice`), with the divergence of the two copies."""
    loss = task.loss(output, inputs)
    log_NC, weight_N = task.log_probabilities(output, inputs)
    one_NC, two_NC = log_NC.chunk(2)
    divergence = (symmetric_kl(one_NC, two_NC) * weight_N.chunk(2)[0]).sum()
    return Loss(loss.sum + 2 * weight * divergence, loss.count)


def symmetric_kl(log_p_NC: Tensor, log_q_NC: Tensor) -> Tensor:
    """(N,) the mean of KL(p, q) and KL(q, p), from log-probabilities."""
    return ((log_p_NC.exp() - log_q_NC.exp()) * (log_p_NC - log_q_NC)).sum(-1) / 2
