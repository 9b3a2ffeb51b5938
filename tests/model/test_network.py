"""Networks built from their settings."""

import pytest
import torch
from tests.presets import transformer_config

from regard.checkpoint.families import preset
from regard.model.network import build_network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork
from regard.model.transformer import Transformer


def test_a_network_can_be_laid_out_without_storage():
    with torch.device("meta"):
        network = Transformer(transformer_config("bert-large-uncased"), {"pooled": 0})
    assert {parameter.device.type for parameter in network.parameters()} == {"meta"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tiny-bert", Transformer),
        ("tiny-t5", Transformer),
        ("tiny-gru", RecurrentNetwork),
        ("tiny-lstm-language", RecurrentNetwork),
        ("tiny-elmo", BidirectionalNetwork),
    ],
)
def test_settings_decide_the_class_of_the_network(name, kind):
    chosen = preset(name)
    network = build_network(chosen.config, chosen.heads)
    assert type(network) is kind
    assert set(chosen.heads) <= set(network.heads)
