"""Scores on text that was held out, and what they are worth: what one reaches without reading the text around."""

from __future__ import annotations

import math
import time

import numpy as np
import torch

from regard.data.batching.sequences import token_batches
from regard.data.corpus.text_source import PairRows, Stream
from regard.data.records import DocumentRecord
from regard.tasks.inference import RowSource, RunNetwork, ScoreResult, batch_outputs
from regard.tasks.task import Task

NOTHING = DocumentRecord("")


@torch.inference_mode()
def score_rows(
    task: Task, run: RunNetwork, rows: RowSource, *, device: torch.device, batch_tokens: int = 8192, seed: int = 0
) -> ScoreResult:
    """Every row of a source once; what is drawn, which words are hidden, is the same every time."""
    began, meter, losses = time.monotonic(), task.meter(), [0.0, 0.0]
    torch.manual_seed(seed)
    lengths = rows.lengths.tolist()
    for chosen in token_batches(lengths, max(batch_tokens, max(lengths, default=1))):
        for _, told in batch_outputs(task, run, rows, chosen, device=device, losses=losses):
            for said in told:
                task.update(meter, task.answer(NOTHING, [said]), NOTHING)
    return ScoreResult(
        rows=len(lengths),
        scores=meter.scores(),
        main=meter.main,
        loss=losses[0] / losses[1] if losses[1] else float("nan"),
        seconds=time.monotonic() - began,
        meter=meter,
        higher=meter.higher_is_better,
    )


def baseline(learned: Stream, held: Stream, rows: RowSource, *, vocabulary: int) -> dict[str, float]:
    """What the counts of single words reach on held-out text, and for pairs the commoner answer.

    The accuracy of always guessing the commonest word, and the perplexity of words drawn as often as they came.
    """
    before, after = learned.counts(vocabulary), held.counts(vocabulary)
    chances = (before + 1) / (before.sum() + vocabulary)
    nll = float(-(after * np.log(chances)).sum() / after.sum())
    found = {"masked_accuracy": float(after[before.argmax()] / after.sum()), "perplexity": math.exp(nll)}
    if isinstance(rows, PairRows):
        share = float(np.mean(rows.pairs.labels))
        found["next_accuracy"] = max(share, 1 - share)
    return found
