import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from regard.config import AttentionConfig, ModelConfig, PoolConfig, PositionConfig, RecurrentConfig, RotaryScaling
from regard.errors import InputError


def config(**changes):
    settings: dict[str, Any] = {
        "vocabulary": 10,
        "width": 12,
        "layers": 1,
        "ffn_width": 8,
        "attention": AttentionConfig(3),
    }
    return ModelConfig(**(settings | changes))


def test_head_width_and_groups_follow_from_the_heads_unless_given():
    assert (config().head_width, config().kv_heads) == (4, 3)
    explicit = config(attention=AttentionConfig(4, kv_heads=2, head_width=5))
    assert (explicit.head_width, explicit.kv_heads) == (5, 2)


def test_longest_is_that_of_the_positions():
    assert config().max_tokens == 512
    assert config(positions=PositionConfig("alibi", max_tokens=None)).max_tokens is None


def test_settings_cannot_be_changed_after_they_were_checked():
    with pytest.raises(FrozenInstanceError):
        config().width = 13


def test_the_model_config_stays_readable():
    assert len(fields(ModelConfig)) <= 24


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: AttentionConfig(2, score="scaledd"), 'attention score "scaledd" is not known. Did you mean "scaled"'),
        (lambda: AttentionConfig(2, select="sparse"), "Choose one of: hard, soft"),
        (lambda: AttentionConfig(0), "heads must be at least 1, not 0"),
        (lambda: AttentionConfig(4, kv_heads=3), "3 key-value heads do not divide 4 heads"),
        (lambda: AttentionConfig(4, kv_heads=0), "0 key-value heads do not divide 4 heads"),
        (lambda: RotaryScaling("yarm", 2.0, original_length=8), 'Did you mean "yarn"'),
        (lambda: RotaryScaling("llama3", 2.0), '"llama3" needs the original length'),
        (lambda: PositionConfig("rotery"), 'Did you mean "rotary"'),
        (lambda: PositionConfig("sinusoidal", max_tokens=None), 'sinusoidal positions need "max_tokens"'),
        (lambda: PoolConfig("last"), 'pooling "last" is not known'),
        (lambda: PoolConfig(activation="gelo"), 'Did you mean "gelu"'),
        (lambda: config(width=0), "width must be at least 1, not 0"),
        (lambda: config(kind="encoder-decoder"), "kind encoder-decoder cannot have 0 decoder layers"),
        (lambda: config(decoder_layers=2), "kind encoder cannot have 2 decoder layers"),
        (lambda: config(activation="mish"), 'activation "mish" is not known'),
        (lambda: config(norm="batch"), "Choose one of: layer, rms"),
        (lambda: config(width=16, attention=AttentionConfig(5)), "5 heads do not divide the width 16. Use 4 heads"),
        (lambda: config(width=9, positions=PositionConfig("rotary")), "even head width, not 3"),
        (lambda: config(eps=-1.0), "eps of the norms must be above 0 and below 1, not -1.0"),
        (lambda: config(eps=0.0), "eps of the norms"),
        (lambda: config(eps=math.nan), "eps of the norms"),
        (lambda: config(eps=math.inf), "eps of the norms"),
        (lambda: config(dropout=1.0), "dropout must be at least 0 and below 1, not 1.0"),
        (lambda: config(dropout=-0.1), "dropout must be at least 0"),
        (lambda: config(dropout=math.nan), "dropout must be at least 0"),
        (lambda: AttentionConfig(2, dropout=2.0), "attention dropout must be at least 0 and below 1, not 2.0"),
        (lambda: AttentionConfig(2, window=-1), "window must be at least 0, not -1"),
        (lambda: AttentionConfig(2, global_every=-3), "global_every must be at least 0, not -3"),
        (lambda: config(init_std=-0.02), "standard deviation of initial weights, must be at least 0, not -0.02"),
        (lambda: config(init_std=math.inf), "standard deviation of initial weights"),
        (lambda: config(segments=-1), "segments must be at least 0, not -1"),
        (lambda: config(embedding_width=0), "embedding_width must be at least 1, not 0"),
        (lambda: config(distinct_layers=0), "distinct_layers must be at least 1, not 0"),
        (lambda: config(distinct_layers=2), "1 layers cannot be made of 2 distinct ones"),
        (lambda: PositionConfig(max_tokens=0), "max_tokens must be at least 1, not 0"),
        (lambda: PositionConfig(offset=-1), "offset must be at least 0, not -1"),
        (lambda: PositionConfig("rotary", theta=math.inf), "base .theta. above 1"),
        (lambda: PositionConfig("rotary", local_theta=0.0), "base .theta. above 1"),
        (lambda: PositionConfig("relative", buckets=2), "at least 4 buckets, not 2"),
        (lambda: PositionConfig("relative", buckets=32, max_distance=16), "must reach beyond 16 tokens, not 16"),
        (lambda: RotaryScaling("linear", math.inf), "must be above 0, not inf"),
        (
            lambda: RotaryScaling("llama3", 2.0, original_length=0),
            "original length of rotary positions must be at least 1",
        ),
        (lambda: RotaryScaling("llama3", 2.0, original_length=8, low=2.0, high=2.0), "they must differ"),
        (
            lambda: RotaryScaling("yarn", 2.0, original_length=8, attention_factor=-1.0),
            '"attention_factor" of rotary scaling',
        ),
        (
            lambda: RecurrentConfig(9, 8, embedding_width=8, dropout=1.5),
            "dropout must be at least 0 and below 1, not 1.5",
        ),
    ],
)
def test_a_wrong_setting_names_the_choices_or_the_fix(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


# sizes that only a damaged file asks for


@pytest.mark.parametrize(
    ("name", "explicit"),
    [("layers", 10**9), ("width", 10**9), ("ffn_width", 10**12), ("vocabulary", 10**30), ("segments", 10**9)],
)
def test_sizes_are_bounded_before_anything_is_allocated(name: str, explicit: int) -> None:
    sizes: dict[str, Any] = {"vocabulary": 100, "width": 32, "layers": 2, "ffn_width": 64, "segments": 2}
    with pytest.raises(InputError, match=f"{name} is 10+, expected at most"):
        ModelConfig(**{**sizes, name: explicit}, attention=AttentionConfig(4))


def test_layers_that_share_weights_are_bounded_too() -> None:
    with pytest.raises(InputError, match="layers is 1000000000, expected at most 4,096"):
        ModelConfig(100, 32, 10**9, 64, AttentionConfig(4), distinct_layers=1)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal-halves"])
def test_a_fixed_table_is_bounded(kind: str) -> None:
    with pytest.raises(InputError, match=r"a table of 32,000,000,000 numbers; expected at most"):
        ModelConfig(100, 32, 2, 64, AttentionConfig(4), positions=PositionConfig(kind, max_tokens=10**9))


def test_positions_without_a_table_may_be_many() -> None:
    assert (
        ModelConfig(
            100, 32, 2, 64, AttentionConfig(4), positions=PositionConfig("rotary", max_tokens=10_485_760)
        ).max_tokens
        == 10_485_760
    )


def test_the_nearest_number_of_heads_of_a_wide_network_is_found_at_once() -> None:
    with pytest.raises(InputError, match=r"7 heads do not divide the width 16777216\. Use 8 heads"):
        ModelConfig(100, 1 << 24, 2, 64, AttentionConfig(7))


@pytest.mark.parametrize("name", ["layers", "width", "embedding_width", "vocabulary"])
def test_sizes_of_recurrent_networks_are_bounded(name: str) -> None:
    sizes: dict[str, Any] = {"vocabulary": 100, "width": 32, "embedding_width": 32, name: 10**12}
    with pytest.raises(InputError, match=f"{name} is 10+, expected at most"):
        RecurrentConfig(**sizes)
