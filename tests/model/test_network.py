"""Networks built from their settings."""

import torch
from tests.presets import transformer_config


def test_a_network_can_be_laid_out_without_storage():
    from regard.model.transformer import Transformer

    with torch.device("meta"):
        network = Transformer(transformer_config("bert-large-uncased"), {"pooled": 0})
    assert {parameter.device.type for parameter in network.parameters()} == {"meta"}
