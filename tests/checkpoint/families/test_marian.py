"""Settings of Marian and of the Transformer of 2017, with one vocabulary or two."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.presets import transformer_config

from regard.checkpoint.families.marian import (
    MARIAN,
    MARIAN_SEPARATE,
    TRANSFORMER,
    TRANSFORMER_SEPARATE,
    read,
    read_2017,
    write,
    write_2017,
)
from regard.checkpoint.families.pegasus import tables


@pytest.mark.parametrize("name", MARIAN.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**MARIAN.defaults, **write(config)}) == config


@pytest.mark.parametrize("name", TRANSFORMER.presets)
def test_settings_of_2017_survive_config_json(name: str) -> None:
    config = replace(transformer_config(name), norm_first=False)
    assert read_2017({**MARIAN.defaults, **write_2017(config)}) == config


@pytest.mark.parametrize(
    ("family", "separate", "name"),
    [(MARIAN, MARIAN_SEPARATE, "tiny-marian"), (TRANSFORMER, TRANSFORMER_SEPARATE, "tiny-transformer")],
)
def test_the_variant_is_selected_by_settings_and_by_config_json(family, separate, name: str) -> None:
    shared = transformer_config(name)
    two = replace(shared, target_vocabulary=90)
    for config, expected in ((shared, family), (two, separate)):
        assert family.for_config(config) is expected
        assert MARIAN.for_json(family.write(config)) is expected


def test_the_tables_of_positions_are_those_of_each_layout() -> None:
    for name in ("tiny-marian", "tiny-transformer"):
        config = transformer_config(name)
        written = tables(config)
        assert len(written) == 2
        assert all(table.shape == (config.max_tokens, config.width) for table in written.values())
    halves, alternating = (
        next(iter(tables(transformer_config(f"tiny-{name}")).values())) for name in ("marian", "transformer")
    )
    torch.testing.assert_close(halves[:, :16], alternating[:, ::2])
    torch.testing.assert_close(halves[:, 16:], alternating[:, 1::2])
