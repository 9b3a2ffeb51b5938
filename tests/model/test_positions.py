import math

import pytest
import torch

from regard.config import PositionConfig, RotaryScaling
from regard.errors import InputError
from regard.model.positions import Alibi, RelativeBias, Rotary, build_bias, check_length, rotate, sinusoidal


@pytest.mark.parametrize("width", [6, 7])
@pytest.mark.parametrize("halves", [False, True])
def test_sinusoidal_is_the_formula(width, halves):
    table = sinusoidal(5, width, halves=halves)
    assert table.shape == (5, width)
    middle = (width + 1) // 2
    for place in range(5):
        for d in range(width):
            pair, cosine = (d % middle, d >= middle) if halves else (d // 2, d % 2 == 1)
            angle = place / 10000 ** (2 * pair / width)
            expected = math.cos(angle) if cosine else math.sin(angle)
            assert table[place, d].item() == pytest.approx(expected, abs=1e-6)


def test_rotary_is_multiplication_by_complex_numbers():
    rotary = Rotary(PositionConfig("rotary"), 8, theta=10000.0)
    places, x = torch.tensor([0, 3, 17]), torch.randn(3, 2, 8, generator=torch.Generator().manual_seed(0))
    turned = rotate(x, rotary(places))
    as_complex = torch.complex(x[..., :4], x[..., 4:])
    angle = places.view(-1, 1, 1) * 10000.0 ** (-torch.arange(0, 8, 2) / 8)
    expected = as_complex * torch.polar(torch.ones_like(angle), angle)
    torch.testing.assert_close(turned, torch.cat([expected.real, expected.imag], -1))
    torch.testing.assert_close(turned[0], x[0])


def test_rotary_scores_depend_on_the_distance_alone():
    rotary = Rotary(PositionConfig("rotary"), 16, theta=100.0)
    q, k = torch.randn(2, 1, 1, 16, generator=torch.Generator().manual_seed(0))

    def score(query, key):
        return (rotate(q, rotary(torch.tensor([query]))) * rotate(k, rotary(torch.tensor([key])))).sum()

    torch.testing.assert_close(score(5, 2), score(45, 42), rtol=1e-4, atol=1e-4)
    assert (score(5, 2) - score(6, 2)).abs() > 1e-3


def test_rotate_keeps_the_number_format():
    rotary = Rotary(PositionConfig("rotary"), 8, theta=10000.0)
    assert rotate(torch.ones(2, 1, 8, dtype=torch.bfloat16), rotary(torch.arange(2))).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("scaling", "theirs"),
    [
        (RotaryScaling("linear", 4.0), {"rope_type": "linear", "factor": 4.0}),
        (
            RotaryScaling("llama3", 8.0, original_length=64, low=1.0, high=4.0),
            {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
            | {"original_max_position_embeddings": 64},
        ),
        (
            RotaryScaling("yarn", 4.0, original_length=64, low=1.0, high=32.0),
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
            | {"beta_slow": 1.0, "beta_fast": 32.0},
        ),
        (
            RotaryScaling("yarn", 4.0, original_length=64, low=1.0, high=32.0, attention_factor=1.25),
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "attention_factor": 1.25},
        ),
    ],
    ids=["linear", "llama3", "yarn", "yarn with its factor"],
)
def test_scaled_rotations_equal_those_of_transformers(scaling, theirs):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        max_position_embeddings=256,
        rope_parameters=theirs | {"rope_theta": 500.0},
    )
    rates, size = ROPE_INIT_FUNCTIONS[theirs["rope_type"]](config, torch.device("cpu"))
    rotary = Rotary(PositionConfig("rotary", theta=500.0, scaling=scaling), 32, theta=500.0)
    torch.testing.assert_close(rotary.frequency_K, rates)
    plain = Rotary(PositionConfig("rotary"), 32, theta=500.0).frequency_K
    assert (rotary.frequency_K - plain).abs().max() > 1e-4
    cosines, _ = rotary(torch.tensor([0]))
    torch.testing.assert_close(cosines, torch.full((1, 1, 32), float(size)))


@pytest.mark.parametrize("both_sides", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20)])
def test_relative_buckets_equal_those_of_t5(both_sides, buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    bias = RelativeBias(
        PositionConfig("relative", buckets=buckets, max_distance=max_distance), 2, bidirectional=both_sides
    )
    distance = torch.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(distance, both_sides, buckets, max_distance)
    assert torch.equal(bias.bucket(distance), theirs)


def test_relative_bias_looks_each_distance_up_in_its_table():
    bias = RelativeBias(PositionConfig("relative"), 2, bidirectional=True)
    bias_HR = bias(5)
    assert bias_HR.shape == (2, 9)
    for r, distance in enumerate(range(-4, 5)):
        row = bias.table.weight[bias.bucket(torch.tensor([distance]))[0]]
        assert torch.equal(bias_HR[:, r], row)


def test_alibi_slopes_halve_for_eight_heads_and_interleave_for_others():
    assert Alibi.slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    expected = [2.0 ** (-8 * n / 4) for n in range(1, 5)] + [2.0 ** (-8 * n / 8) for n in (1, 3)]
    assert Alibi.slopes(6).tolist() == pytest.approx(expected)
    assert Alibi.slopes(1).tolist() == [2.0**-8]


def test_alibi_bias_falls_with_distance_on_both_sides():
    assert Alibi(8)(3)[0].tolist() == [-1.0, -0.5, 0.0, -0.5, -1.0]


def test_computed_tables_have_storage_even_where_weights_have_none():
    with torch.device("meta"):
        rotary, alibi = Rotary(PositionConfig("rotary"), 8, theta=100.0), Alibi(4)
        table = sinusoidal(4, 6)
    assert {x.device.type for x in (rotary.frequency_K, alibi.slope_H, table)} == {"cpu"}


def test_only_relative_and_alibi_positions_have_a_bias():
    assert isinstance(build_bias(PositionConfig("relative"), 2, bidirectional=True), RelativeBias)
    assert isinstance(build_bias(PositionConfig("alibi"), 2, bidirectional=True), Alibi)
    assert build_bias(PositionConfig("learned"), 2, bidirectional=True) is None


def test_too_long_is_an_error_that_says_the_limit():
    check_length(512, 512)
    check_length(10**6, None)
    with pytest.raises(InputError, match=r"513 tokens, but this network reads at most 512. Split it"):
        check_length(513, 512)


@pytest.mark.parametrize("kind", ["rotary", "alibi"])
def test_what_positions_are_computed_from_stays_exact_when_the_network_is_cast(kind):
    config = PositionConfig(kind)
    module = Rotary(config, 16, theta=160000.0) if kind == "rotary" else Alibi(6)
    name = "frequency_K" if kind == "rotary" else "slope_H"
    exact = getattr(module, name).clone()
    assert torch.equal(getattr(module.bfloat16(), name), exact)
    assert torch.equal(getattr(module.half().float(), name), exact)
