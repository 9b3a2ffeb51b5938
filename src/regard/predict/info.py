"""A summary of a model: family, shape, size, task, tokenizer and labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.weights import stored_tensors, weight_files
from regard.config import ModelConfig
from regard.export.engines import recorded_engine
from regard.model.network import Network
from regard.text.tokenizer import Tokenizer

UNTRAINED = "untrained: the weights are randomly initialized"


@dataclass(frozen=True)
class ModelInfo:
    """What `regard info` shows. The layers of an encoder-decoder are those of both parts."""

    family: str
    task: str | None
    parameters: int
    layers: int
    width: int
    heads: int
    vocabulary: int
    target_vocabulary: int | None  # for translators with a separate vocabulary for the target language
    bytes: int  # size of the weights: on disk for a model folder, else in memory
    kind: str  # "encoder", "decoder" or "encoder-decoder"
    max_tokens: int | None  # maximum length of a sequence; None without a limit
    pooling: str
    tokenizer: str | None
    labels: tuple[str, ...] | None
    layer_weights: tuple[float, ...] | None = None  # ELMo: learned weight of each layer, the embeddings first
    weights: str = "stored"  # "stored" in a folder, "untrained" (randomly initialized), or "not read" for a preset
    note: str | None = None  # a remark about the weights
    engine: str | None = None  # what computes it on a CPU, where `regard compress` chose it: "int8"


def model_info(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer | None,
    folder: Path | None,
    *,
    task: str | None,
    pooling: str,
    untrained: bool,
) -> ModelInfo:
    """The summary of a network with its tokenizer."""
    config = checkpoint.config
    weights = list(checkpoint.network.parameters())
    size = sum(weight.nbytes for weight in weights)
    if folder is not None:
        size = sum(file.stat().st_size for file in weight_files(folder))
    return ModelInfo(
        family=checkpoint.family,
        task=task,
        parameters=sum(weight.numel() for weight in weights),
        layers=config.layers + config.decoder_layers,
        width=config.width,
        heads=config.attention.heads if isinstance(config, ModelConfig) else 1,
        vocabulary=config.vocabulary,
        target_vocabulary=config.target_vocabulary,
        bytes=size,
        kind=config.kind,
        max_tokens=config.max_tokens,
        pooling=pooling,
        tokenizer=None if tokenizer is None else tokenizer.kind,
        labels=checkpoint.labels,
        layer_weights=_layer_weights(checkpoint.network, folder),
        weights="untrained" if untrained else "stored",
        note=UNTRAINED if untrained else None,
        engine=recorded_engine(folder).get("name"),
    )


def _layer_weights(network: Network, folder: Path | None) -> tuple[float, ...] | None:
    """The learned weights of the layers; read from the folder if the network was built without its weights."""
    if "mix" not in network.heads:
        return None
    scores_L: Tensor = network.heads.get_parameter("mix.scores").detach()
    if scores_L.is_meta and folder is not None:
        scores_L = stored_tensors(folder)["heads.mix.scores"].read({})
    if scores_L.is_meta:
        return None
    return tuple(round(weight, 4) for weight in scores_L.float().softmax(0).tolist())
