"""The picture of weights in notebooks."""

from __future__ import annotations

import re

from tests.look.models import KINDS, TEXT

from regard.predict.plots.attention_svg import MAX_TOKENS, attention_svg


def test_every_weight_is_a_cell() -> None:
    weights = KINDS["encoder"]().attention(TEXT)
    picture = weights._repr_html_()
    count = len(weights.tokens)
    assert picture.count("<rect") == count * count
    opacities = [float(value) for value in re.findall(r'fill-opacity="([\d.]+)"', picture)]
    mean = weights[2].mean(0)
    assert abs(opacities[1] - float(mean[0, 1] / mean.max())) < 2e-3


def test_tokens_are_escaped_and_long_texts_cut() -> None:
    hostile = ["<script>", *["x"] * MAX_TOKENS]
    weights = [[1.0] * len(hostile)] * len(hostile)
    picture = attention_svg(hostile, weights, title="a & b", layer=1)
    assert "<script>" not in picture
    assert "a &amp; b" in picture
    assert picture.count("<rect") == MAX_TOKENS**2
