"""Networks without storage, and tensors put into them."""

from __future__ import annotations

from regard.checkpoint.families import PRESETS
from regard.checkpoint.network_tensors import build_on_meta


def test_laying_out_makes_no_numbers() -> None:
    chosen = PRESETS["tiny-bert"]
    assert all(parameter.is_meta for parameter in build_on_meta(chosen.config, chosen.heads).parameters())
