"""Published and small networks by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from regard.config import AttentionConfig, Config, ModelConfig, PoolConfig, PositionConfig, RecurrentConfig
from regard.errors import InputError, did_you_mean

C = TypeVar("C", bound=Config, covariant=True)


@dataclass(frozen=True)
class Preset(Generic[C]):
    """Settings, the family whose folders they are written as, and the heads the plain network has there."""

    family: str
    config: C
    heads: Mapping[str, int] = field(default_factory=dict)


def _bert(vocabulary: int, width: int, layers: int, heads: int, *, ffn_width: int | None = None) -> Preset[ModelConfig]:
    config = ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=ffn_width or 4 * width,
        attention=AttentionConfig(heads, dropout=0.1),
        segments=2,
    )
    return Preset("bert", config, {"pooled": 0})


def _roberta(vocabulary: int, width: int, layers: int, heads: int, *, max_tokens: int = 512) -> Preset[ModelConfig]:
    config = replace(
        _bert(vocabulary, width, layers, heads).config,
        positions=PositionConfig(max_tokens=max_tokens, offset=2),
        segments=1,
        eps=1e-5,
    )
    return Preset("roberta", config, {"pooled": 0})


def _distilbert(vocabulary: int, width: int, layers: int, heads: int) -> Preset[ModelConfig]:
    config = replace(_bert(vocabulary, width, layers, heads).config, segments=0, pool=PoolConfig(activation="relu"))
    return Preset("distilbert", config)


def _electra(vocabulary: int, width: int, layers: int, heads: int, *, embedding_width: int) -> Preset[ModelConfig]:
    config = replace(
        _bert(vocabulary, width, layers, heads).config,
        embedding_width=embedding_width,
        pool=PoolConfig(activation="gelu"),
    )
    return Preset("electra", config)


def _albert(vocabulary: int, width: int, layers: int, heads: int, *, embedding_width: int) -> Preset[ModelConfig]:
    config = replace(
        _bert(vocabulary, width, layers, heads).config,
        attention=AttentionConfig(heads),
        embedding_width=embedding_width,
        activation="gelu-tanh",
        distinct_layers=1,
        dropout=0.0,
    )
    return Preset("albert", config, {"pooled": 0})


def _modernbert(
    vocabulary: int, width: int, layers: int, heads: int, *, ffn_width: int, window: int = 64
) -> Preset[ModelConfig]:
    config = ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=ffn_width,
        attention=AttentionConfig(heads, window=window, global_every=3),
        positions=PositionConfig("rotary", max_tokens=8192, theta=160000.0, local_theta=10000.0),
        pool=PoolConfig(activation="gelu", norm=True, bias=False, transform_tokens=True),
        activation="geglu",
        norm_first=True,
        eps=1e-5,
        bias=False,
        dropout=0.0,
    )
    return Preset("modernbert", config)


def _gpt2(vocabulary: int, width: int, layers: int, heads: int, *, max_tokens: int = 1024) -> Preset[ModelConfig]:
    config = ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=4 * width,
        kind="decoder",
        attention=AttentionConfig(heads, dropout=0.1),
        positions=PositionConfig(max_tokens=max_tokens),
        activation="gelu-tanh",
        norm_first=True,
        eps=1e-5,
        embedding_norm=False,
    )
    return Preset("gpt2", config, {"language": 0})


def _llama(
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    *,
    kv_heads: int,
    ffn_width: int,
    max_tokens: int = 2048,
    tied: bool = False,
) -> Preset[ModelConfig]:
    config = ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=ffn_width,
        kind="decoder",
        attention=AttentionConfig(heads, kv_heads=kv_heads),
        positions=PositionConfig("rotary", max_tokens=max_tokens),
        activation="swiglu",
        norm="rms",
        norm_first=True,
        eps=1e-6,
        bias=False,
        embedding_norm=False,
        tied=tied,
        dropout=0.0,
    )
    return Preset("llama", config, {"language": 0})


def _t5(
    vocabulary: int, width: int, layers: int, heads: int, *, ffn_width: int, head_width: int
) -> Preset[ModelConfig]:
    config = ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=ffn_width,
        kind="encoder-decoder",
        decoder_layers=layers,
        attention=AttentionConfig(heads, head_width=head_width, score="dot", dropout=0.1),
        positions=PositionConfig("relative", max_tokens=None),
        activation="relu",
        norm="rms",
        norm_first=True,
        eps=1e-6,
        bias=False,
        embedding_norm=False,
        output="scaled",
        init_std=None,
    )
    return Preset("t5", config, {"language": 0})


def _bart(vocabulary: int, width: int, layers: int, heads: int, *, max_tokens: int = 1024) -> Preset[ModelConfig]:
    config = ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=4 * width,
        kind="encoder-decoder",
        decoder_layers=layers,
        attention=AttentionConfig(heads),
        positions=PositionConfig(max_tokens=max_tokens, offset=2),
        eps=1e-5,
        output="biased",
    )
    return Preset("bart", config, {"language": 0})


def _marian(vocabulary: int, width: int, layers: int, heads: int) -> Preset[ModelConfig]:
    config = replace(
        _bart(vocabulary, width, layers, heads).config,
        positions=PositionConfig("sinusoidal-halves"),
        activation="silu",
        embedding_norm=False,
        embedding_scale=True,
    )
    return Preset("marian", config, {"language": 0})


def _transformer(vocabulary: int, width: int, layers: int, heads: int) -> Preset[ModelConfig]:
    config = replace(
        _marian(vocabulary, width, layers, heads).config,
        positions=PositionConfig("sinusoidal"),
        activation="relu",
        output="plain",
        init_std=None,
    )
    return Preset("transformer", config, {"language": 0})


def _recurrent(vocabulary: int, width: int, score: str = "none", **settings: Any) -> Preset[RecurrentConfig]:
    config = RecurrentConfig(vocabulary, width, embedding_width=width, score=score, tied=True, **settings)
    return Preset("recurrent", config, {"language": 0})


def _recurrent_language(vocabulary: int, width: int, cell: str, *, layers: int = 2) -> Preset[RecurrentConfig]:
    config = RecurrentConfig(vocabulary, width, embedding_width=width, layers=layers, kind="decoder", cell=cell)
    return Preset("recurrent-language", config, {"language": 0})


def _elmo(vocabulary: int, side: int, *, layers: int = 2) -> Preset[RecurrentConfig]:
    config = RecurrentConfig(vocabulary, 2 * side, embedding_width=side, layers=layers, kind="encoder", cell="lstm")
    return Preset("elmo", config, {"sides": 0})


PRESETS: Mapping[str, Preset[Config]] = {
    "bert-tiny": _bert(30522, 128, 2, 2),
    "bert-mini": _bert(30522, 256, 4, 4),
    "bert-small": _bert(30522, 512, 4, 8),
    "bert-medium": _bert(30522, 512, 8, 8),
    "bert-base-uncased": _bert(30522, 768, 12, 12),
    "bert-base-cased": _bert(28996, 768, 12, 12),
    "bert-base-chinese": _bert(21128, 768, 12, 12),
    "bert-base-multilingual-cased": _bert(119547, 768, 12, 12),
    "bert-large-uncased": _bert(30522, 1024, 24, 16),
    "roberta-base": _roberta(50265, 768, 12, 12),
    "distilbert-base": _distilbert(30522, 768, 6, 12),
    "electra-small": _electra(30522, 256, 12, 4, embedding_width=128),
    "albert-base": _albert(30000, 768, 12, 12, embedding_width=128),
    "modernbert-base": _modernbert(50368, 768, 22, 12, ffn_width=1152),
    "gpt2": _gpt2(50257, 768, 12, 12),
    "gpt2-mini": _gpt2(8000, 384, 6, 6, max_tokens=256),
    "llama-micro": _llama(8000, 128, 4, 4, kv_heads=4, ffn_width=352, max_tokens=256, tied=True),
    "t5-small": _t5(32128, 512, 6, 8, ffn_width=2048, head_width=64),
    "bart-base": _bart(50265, 768, 6, 12),
    "marian": _marian(58101, 512, 6, 8),
    "transformer-base": _transformer(37000, 512, 6, 8),
    "transformer-small": _transformer(8000, 256, 3, 4),
    "gru": _recurrent(8000, 512),
    "gru-dot": _recurrent(8000, 512, "dot"),
    "gru-bilinear": _recurrent(8000, 512, "bilinear"),
    "gru-additive": _recurrent(8000, 512, "additive"),
    "gru-local": _recurrent(8000, 512, "bilinear", window=5, center="predicted"),
    "gru-feeding": _recurrent(8000, 512, "additive", input_feeding=True),
    "gru-mini": _recurrent(2000, 128, "additive"),
    "lstm": _recurrent(8000, 512, cell="lstm"),
    "lstm-dot": _recurrent(8000, 512, "dot", cell="lstm"),
    "lstm-bilinear": _recurrent(8000, 512, "bilinear", cell="lstm"),
    "lstm-additive": _recurrent(8000, 512, "additive", cell="lstm"),
    "gru-characters": _recurrent_language(1000, 512, "gru"),
    "elmo-small": _elmo(8000, 256),
    "lstm-characters": _recurrent_language(1000, 512, "lstm"),
    "tiny-bert": _bert(100, 32, 2, 4, ffn_width=64),
    "tiny-roberta": _roberta(100, 32, 2, 4, max_tokens=128),
    "tiny-distilbert": _distilbert(100, 32, 2, 4),
    "tiny-electra": _electra(100, 32, 2, 4, embedding_width=16),
    "tiny-albert": _albert(100, 32, 3, 4, embedding_width=16),
    "tiny-modernbert": _modernbert(100, 32, 4, 4, ffn_width=48, window=4),
    "tiny-gpt2": _gpt2(100, 32, 2, 4, max_tokens=128),
    "tiny-llama": _llama(100, 32, 2, 4, kv_heads=2, ffn_width=64),
    "tiny-t5": _t5(100, 32, 2, 4, ffn_width=64, head_width=8),
    "tiny-bart": _bart(100, 32, 2, 4, max_tokens=128),
    "tiny-marian": _marian(100, 32, 2, 4),
    "tiny-transformer": _transformer(100, 32, 2, 4),
    "tiny-gru": _recurrent(100, 32),
    "tiny-gru-additive": _recurrent(100, 32, "additive"),
    "tiny-lstm-feeding": _recurrent(100, 32, "bilinear", cell="lstm", input_feeding=True),
    "tiny-elmo": _elmo(100, 16),
    "tiny-lstm-language": _recurrent_language(100, 32, "lstm"),
}


def preset(name: str) -> Preset[Config]:
    """The network of that name."""
    if name not in PRESETS:
        raise InputError(
            f'preset "{name}" is not known: presets are the shapes of untrained networks.{did_you_mean(name, PRESETS)} '
            "A trained model is given with --start, or regard.load."
        )
    return PRESETS[name]
