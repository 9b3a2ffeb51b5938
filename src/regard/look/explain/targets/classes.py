"""The logit of a class of a text or a pair of texts, or the number that is predicted for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.batching.framing import Frame, pair_windows, single_windows
from regard.errors import InputError, did_you_mean
from regard.look.explain.explanation import ExplainedTarget
from regard.look.explain.scorer import target_values
from regard.look.explain.targets.target import Target
from regard.look.explain.tokenized import TokenizedText, from_windows
from regard.model.transformer import Output
from regard.ragged import Ragged
from regard.tasks.classify import Classify

if TYPE_CHECKING:
    from regard.predict.model import Model


@dataclass(frozen=True)
class ClassTarget(Target):
    """`number` is the class, `kind` is single, multi or number, as of the task."""

    number: int = 0
    kind: str = "single"
    temperature: float = 1.0
    first: bool = True  # whether the first token's state is read; else those of all tokens

    def at(self, positions_BP: Tensor) -> Tensor:
        return positions_BP.new_empty(0)

    def read(self, output: Output, batch: Ragged, positions_BP: Tensor) -> Tensor:
        assert output.logits is not None
        return output.logits.float()

    def score(self, values_BC: Tensor) -> Tensor:
        return values_BC[:, self.number]

    def probability(self, values_BC: Tensor) -> Tensor | None:
        if self.kind == "number":
            return None
        logits_BC = values_BC / self.temperature
        chances_BC = logits_BC.softmax(-1) if self.kind == "single" else logits_BC.sigmoid()
        return chances_BC[:, self.number]

    def rollout_rows(self, length: int) -> list[int]:
        return [0] if self.first else list(range(length))


def tokenize(model: Model, text: str, pair: str | None) -> TokenizedText:
    """A text or a pair in the windows in which the model reads it."""
    preprocessing = model.preprocessing()
    tokenizer = preprocessing.tokenizer
    frame = Frame.of(tokenizer)
    limit, overlap = preprocessing.max_tokens, preprocessing.overlap
    texts = (text,) if pair is None else (text, pair)
    encodings = [tokenizer.encode(one, special=False) for one in texts]
    if pair is None:
        windows = single_windows(frame, encodings[0].ids, max_tokens=limit, overlap=overlap)
    else:
        windows = pair_windows(frame, encodings[0].ids, encodings[1].ids, max_tokens=limit, overlap=overlap)
    return from_windows(tokenizer, texts, encodings, windows, segments=preprocessing.segments)


def class_target(
    model: Model, task: Classify, text: str, pair: str | None, label: str | None
) -> tuple[TokenizedText, Target]:
    """The target for a label; the predicted one if None."""
    tokenized = tokenize(model, text, pair)
    poolers = [head for name, head in model.network.heads.items() if name == "pooled"]
    first = any(getattr(pooler, "pooling", "mean") == "first" for pooler in poolers)
    if task.kind == "number":
        if label is not None:
            raise InputError(f'target "{label}" was given, but this model predicts a number. Leave it out.')
        return tokenized, ClassTarget(ExplainedTarget("number", "", "the predicted number"), 0, "number", first=first)
    if label is not None and label not in task.names:
        raise InputError(f'target "{label}" is not a class of this model.{did_you_mean(label, task.names)}')
    number = task.names.index(label) if label is not None else 0
    if label is None:
        probe = ClassTarget(ExplainedTarget("class", "", ""), 0, task.kind, task.temperature)
        with torch.no_grad():
            number = int(target_values(model.network, tokenized, probe)[0].argmax())
    name = task.names[number]
    info = ExplainedTarget("class", name, f'the class "{name}"')
    return tokenized, ClassTarget(info, number, task.kind, task.temperature, first)
