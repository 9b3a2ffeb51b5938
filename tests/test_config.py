from dataclasses import FrozenInstanceError, fields

import pytest

from regard.config import AttentionConfig, ModelConfig, PoolConfig, PositionConfig, RotaryScaling
from regard.errors import InputError


def config(**changes):
    settings = {"vocabulary": 10, "width": 12, "layers": 1, "inner": 8, "attention": AttentionConfig(3)}
    return ModelConfig(**(settings | changes))


def test_head_width_and_groups_follow_from_the_heads_unless_given():
    assert (config().head_width, config().groups) == (4, 3)
    given = config(attention=AttentionConfig(4, groups=2, head_width=5))
    assert (given.head_width, given.groups) == (5, 2)


def test_longest_is_that_of_the_positions():
    assert config().longest == 512
    assert config(positions=PositionConfig("alibi", longest=None)).longest is None


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
        (lambda: AttentionConfig(4, groups=3), "3 key-value heads do not divide 4 heads"),
        (lambda: AttentionConfig(4, groups=0), "0 key-value heads do not divide 4 heads"),
        (lambda: RotaryScaling("yarm", 2.0, original=8), 'Did you mean "yarn"'),
        (lambda: RotaryScaling("llama3", 2.0), '"llama3" needs the original length'),
        (lambda: PositionConfig("rotery"), 'Did you mean "rotary"'),
        (lambda: PositionConfig("sinusoidal", longest=None), 'sinusoidal positions need "longest"'),
        (lambda: PoolConfig("last"), 'pooling "last" is not known'),
        (lambda: PoolConfig(activation="gelo"), 'Did you mean "gelu"'),
        (lambda: config(width=0), "width must be at least 1, not 0"),
        (lambda: config(kind="encoder-decoder"), "kind encoder-decoder cannot have 0 decoder layers"),
        (lambda: config(decoder_layers=2), "kind encoder cannot have 2 decoder layers"),
        (lambda: config(activation="mish"), 'activation "mish" is not known'),
        (lambda: config(norm="batch"), "Choose one of: layer, rms"),
        (lambda: config(width=16, attention=AttentionConfig(5)), "5 heads do not divide the width 16. Use 4 heads"),
        (lambda: config(width=9, positions=PositionConfig("rotary")), "even head width, not 3"),
    ],
)
def test_a_wrong_setting_names_the_choices_or_the_mend(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()
