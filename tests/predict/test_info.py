"""What a model is, from its settings and headers alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.predict import info

SIZES = {  # shared/peers.md
    "bert-tiny": 4_385_920,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-medium": 41_373_184,
    "bert-base-uncased": 109_482_240,
    "bert-base-cased": 108_310_272,
    "bert-base-chinese": 102_267_648,
    "bert-base-multilingual-cased": 177_853_440,
    "bert-large-uncased": 335_141_888,
}


@pytest.mark.parametrize("name", SIZES)
def test_info_counts_without_making_a_weight(name: str) -> None:
    checkpoint = from_preset(name, weights=False)
    assert all(tensor.is_meta for tensor in checkpoint.network.state_dict().values())
    result = info(name)
    assert result.parameters == SIZES[name]
    assert result.bytes == 4 * SIZES[name]
    assert result.weights == "not read"
    assert result.note is not None
    assert f"numbers of the published shape; its weights ({PUBLISHED[name]} on the hub)" in result.note


def test_info_of_a_folder_reads_no_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    write_folder(folder, from_preset("tiny-bert", dtype=torch.float32))
    monkeypatch.setattr("regard.checkpoint.weights.StoredTensor.read", lambda *_: pytest.fail("a tensor was read"))
    result = info(folder)
    assert result.parameters == sum(
        parameter.numel()
        for parameter in from_preset("tiny-bert", dtype=torch.float32, weights=False).network.parameters()
    )
    assert result.bytes == (folder / "model.safetensors").stat().st_size
