"""The similarity of a text's vector to that of a second text, or its length."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.errors import InputError
from regard.look.explain.explanation import ExplainedTarget
from regard.look.explain.targets.target import Target
from regard.look.explain.tokenized import TokenizedText, from_encoding
from regard.model.transformer import Output
from regard.ragged import Ragged

if TYPE_CHECKING:
    from regard.predict.model import Model


@dataclass(frozen=True)
class VectorTarget(Target):
    """The cosine with `other_D`, or the length of the vector if it is None."""

    pooling: str = "mean"
    other_D: Tensor | None = field(default=None, compare=False)

    def at(self, positions_BP: Tensor) -> None:
        return None

    def read(self, output: Output, batch: Ragged, positions_BP: Tensor) -> Tensor:
        """(B, D) the vectors of the texts."""
        if self.pooling == "first":
            return output.hidden[batch.first()].float()
        return (batch.mean(output.hidden) if self.pooling == "mean" else batch.max(output.hidden)).float()

    def score(self, values_BC: Tensor) -> Tensor:
        if self.other_D is None:
            lengths_B: Tensor = torch.linalg.vector_norm(values_BC, dim=-1)
            return lengths_B
        return torch.nn.functional.cosine_similarity(values_BC, self.other_D.expand_as(values_BC), dim=-1)

    def linear_score(self, values_BC: Tensor) -> Tensor:
        """With a fixed length, or a fixed direction for the length itself."""
        lengths_B1: Tensor = torch.linalg.vector_norm(values_BC.detach(), dim=-1, keepdim=True).clamp(min=1e-12)
        if self.other_D is None:
            return (values_BC * values_BC.detach() / lengths_B1).sum(-1)
        direction_D: Tensor = self.other_D / torch.linalg.vector_norm(self.other_D)
        return (values_BC / lengths_B1) @ direction_D

    def rollout_rows(self, length: int) -> list[int]:
        return [0] if self.pooling == "first" else list(range(length))


def vector_target(model: Model, text: str, pair: str | None, target: str | None) -> tuple[TokenizedText, Target]:
    """The target for the similarity to a second text; the length of the vector if there is none."""
    if target is not None:
        raise InputError(
            f'target "{target}" was given, but this model has vectors and no classes. Give a second text as pair, to '
            "explain how similar both are."
        )
    tokenizer = model.require_tokenizer()
    encoding = tokenizer.encode(text)
    limit = model.config.max_tokens
    if limit is not None and len(encoding.ids) > limit:
        raise InputError(
            f"the text has {len(encoding.ids)} tokens; the maximum of this network is {limit}, and a vector is "
            "explained within one sequence. Give a shorter text."
        )
    tokenized = from_encoding(tokenizer, text, encoding, segments=model.config.segments > 1)
    if pair is None:
        return tokenized, VectorTarget(ExplainedTarget("norm", "", "the length of the vector"), model.pooling)
    other_D = torch.from_numpy(model.embed([pair])[0]).to(model.device)
    info = ExplainedTarget("similarity", pair, f'the similarity to "{pair}"')
    return tokenized, VectorTarget(info, model.pooling, other_D)
