"""T5 (Raffel et al. 2020) and its later version (v1.1) with gated units and an untied output."""

from __future__ import annotations

from typing import Any

from regard.checkpoint.family import Family, HFConfig
from regard.checkpoint.names import NameTable
from regard.config import AttentionConfig, ModelConfig, PositionConfig
from regard.errors import FolderError, did_you_mean

UNITS = {"relu": "relu", "gated-gelu": "geglu-tanh", "gated-silu": "swiglu", "gelu": "gelu", "silu": "silu"}
DEFAULTS: HFConfig = {
    "vocab_size": 32128,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_decoder_layers": None,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "dropout_rate": 0.1,
    "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "relu",
    "tie_word_embeddings": True,
    "scale_decoder_outputs": None,
}


def read(hf: HFConfig) -> ModelConfig:
    unit = hf["feed_forward_proj"]
    if unit not in UNITS:
        raise FolderError(f'config.json: feed_forward_proj "{unit}" is not known.{did_you_mean(unit, UNITS)}')
    tied = hf["tie_word_embeddings"]
    scaled = hf["scale_decoder_outputs"]
    if scaled is None:
        scaled = tied
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=hf["d_model"],
        layers=hf["num_layers"],
        ffn_width=hf["d_ff"],
        kind="encoder-decoder",
        decoder_layers=hf["num_decoder_layers"] or hf["num_layers"],
        attention=AttentionConfig(hf["num_heads"], head_width=hf["d_kv"], score="dot", dropout=hf["dropout_rate"]),
        positions=PositionConfig(
            "relative",
            max_tokens=None,
            buckets=hf["relative_attention_num_buckets"],
            max_distance=hf["relative_attention_max_distance"],
        ),
        activation=UNITS[unit],
        norm="rms",
        norm_first=True,
        eps=hf["layer_norm_epsilon"],
        bias=False,
        embedding_norm=False,
        tied=tied,
        output="scaled" if scaled else "plain",
        dropout=hf["dropout_rate"],
        init_std=None,
    )


def write(config: ModelConfig) -> dict[str, Any]:
    unit = {ours: theirs for theirs, ours in UNITS.items()}.get(config.activation, config.activation)
    return {
        "vocab_size": config.vocabulary,
        "d_model": config.width,
        "d_kv": config.head_width,
        "d_ff": config.ffn_width,
        "num_layers": config.layers,
        "num_decoder_layers": config.decoder_layers,
        "num_heads": config.attention.heads,
        "relative_attention_num_buckets": config.positions.buckets,
        "relative_attention_max_distance": config.positions.max_distance,
        "dropout_rate": config.dropout,
        "layer_norm_epsilon": config.eps,
        "feed_forward_proj": unit,
        "is_encoder_decoder": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
        "tie_word_embeddings": config.tied,
        "scale_decoder_outputs": config.output == "scaled",
    }


def stack(ours: str, *, feed: int, gated: bool) -> NameTable:
    """The layers of an encoder or a decoder; the feed-forward part is their second or third sub-layer."""
    attention, unit = f"{ours}.block.{{}}.layer.0.", f"{ours}.block.{{}}.layer.{feed}."
    wide = (unit + "DenseReluDense.wi_0", unit + "DenseReluDense.wi_1") if gated else unit + "DenseReluDense.wi"
    return {
        f"{ours}.bias.table": f"{ours}.block.0.layer.0.SelfAttention.relative_attention_bias",
        f"{ours}.layers.{{}}.attention.qkv": tuple(attention + f"SelfAttention.{part}" for part in "qkv"),
        f"{ours}.layers.{{}}.attention.out": attention + "SelfAttention.o",
        f"{ours}.layers.{{}}.attention_norm": attention + "layer_norm",
        f"{ours}.layers.{{}}.feedforward.up": wide,
        f"{ours}.layers.{{}}.feedforward.down": unit + "DenseReluDense.wo",
        f"{ours}.layers.{{}}.feedforward_norm": unit + "layer_norm",
        f"{ours}.norm": f"{ours}.final_layer_norm",
    }


def preset_config(
    vocabulary: int, width: int, layers: int, heads: int, *, ffn_width: int, head_width: int
) -> ModelConfig:
    """The settings of a preset."""
    return ModelConfig(
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


def select_by_json(hf: HFConfig) -> Family:
    """The gated variant where config.json names one."""
    return T5_GATED if str(hf.get("feed_forward_proj", "")).startswith("gated") else T5


def select_by_config(config: ModelConfig) -> Family:
    """The gated variant for gated activations."""
    return T5_GATED if config.activation in ("geglu", "geglu-tanh", "swiglu") else T5


def family(*, gated: bool) -> Family:
    """The family with one matrix into the feed-forward layer, or with two (gated)."""
    cross = "decoder.block.{}.layer.1."
    return Family(
        name="t5",
        title="T5",
        select_by_json=select_by_json,
        select_by_config=select_by_config,
        presets={
            "t5-small": preset_config(32128, 512, 6, 8, ffn_width=2048, head_width=64),
            "tiny-t5": preset_config(100, 32, 2, 4, ffn_width=64, head_width=8),
        },
        preset_heads={"language": 0},
        vocabulary_kind="unigram",
        classes={"T5Model": (), "T5ForConditionalGeneration": ("language",)},
        defaults=DEFAULTS,
        read=read,
        write=write,
        base={
            "encoder.embeddings.tokens": "shared",
            **stack("encoder", feed=1, gated=gated),
            **stack("decoder", feed=2, gated=gated),
            "decoder.layers.{}.cross.query": cross + "EncDecAttention.q",
            "decoder.layers.{}.cross.memory": (cross + "EncDecAttention.k", cross + "EncDecAttention.v"),
            "decoder.layers.{}.cross.out": cross + "EncDecAttention.o",
            "decoder.layers.{}.cross_norm": cross + "layer_norm",
        },
        heads={"language": {"heads.language.output.weight": "lm_head.weight"}},
        aliases={
            "encoder.embed_tokens.weight": "shared.weight",
            "decoder.embed_tokens.weight": "shared.weight",
            "lm_head.weight": "shared.weight",
        },
        dropped=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
    )


T5 = family(gated=False)
T5_GATED = family(gated=True)
