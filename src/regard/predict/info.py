"""What there is to know about a model before using it: its shape, its size, what it was made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from torch import Tensor

from regard.checkpoint.weights import stored_tensors, weight_files
from regard.config import RecurrentConfig

if TYPE_CHECKING:
    from regard.predict.model import Model


UNTRAINED = "untrained: the weights are randomly initialized"


@dataclass(frozen=True)
class ModelInfo:
    """Of an encoder-decoder the layers are those of both; bytes are those on disk, where it comes from there."""

    family: str
    task: str | None
    parameters: int
    layers: int
    width: int
    heads: int
    vocabulary: int
    target_vocabulary: int | None  # where the other language of a translator has words of its own
    bytes: int
    kind: str
    max_tokens: int | None
    pooling: str
    tokenizer: str | None
    labels: tuple[str, ...] | None
    layer_weights: tuple[float, ...] | None = (
        None  # how much of each layer a two-sided network takes, the embeddings first
    )
    weights: str = "stored"  # "stored" in a folder, "untrained" (randomly initialized), or "not read" of a shape
    note: str | None = None  # about the weights, in words

    @classmethod
    def from_model(cls, model: Model) -> Self:
        weights = list(model.network.parameters())
        size = sum(weight.nbytes for weight in weights)
        if model.folder is not None:
            size = sum(file.stat().st_size for file in weight_files(model.folder))
        config = model.config
        return cls(
            family=model.family,
            task=model.task,
            parameters=sum(weight.numel() for weight in weights),
            layers=config.layers + config.decoder_layers,
            width=config.width,
            heads=1 if isinstance(config, RecurrentConfig) else config.attention.heads,
            vocabulary=config.vocabulary,
            target_vocabulary=config.target_vocabulary,
            bytes=size,
            kind=config.kind,
            max_tokens=config.max_tokens,
            pooling=model.pooling,
            tokenizer=None if model.tokenizer is None else model.tokenizer.kind,
            labels=model.labels,
            layer_weights=_mix(model),
            weights="untrained" if model.untrained else "stored",
            note=UNTRAINED if model.untrained else None,
        )


def _mix(model: Model) -> tuple[float, ...] | None:
    """What a task learned of its layers; read alone where no weight was."""
    if "mix" not in model.network.heads:
        return None
    scores_L: Tensor = model.network.heads.get_parameter("mix.scores").detach()
    if scores_L.is_meta and model.folder is not None:
        scores_L = stored_tensors(model.folder)["heads.mix.scores"].read({})
    return None if scores_L.is_meta else tuple(round(share, 4) for share in scores_L.float().softmax(0).tolist())
