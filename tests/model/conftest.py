import pytest
import torch

from regard.checkpoint.families import preset
from regard.model.initialization import initialize
from regard.model.network import build_network as network_of
from regard.ragged import Ragged


def build(name_or_config, heads=None, *, seed=0):
    """A network with seeded weights, large enough that its parts matter, in evaluation mode."""
    if isinstance(name_or_config, str):
        config, heads = preset(name_or_config).config, preset(name_or_config).heads if heads is None else heads
    else:
        config = name_or_config
    network = network_of(config, heads)
    initialize(network, config, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)), alpha=0.1)
    return network.eval()


def tokens(lengths, *, seed=0, vocabulary=100):
    """A batch of random ids with these lengths."""
    generator = torch.Generator().manual_seed(seed)
    return Ragged.from_flat(torch.randint(vocabulary, (sum(lengths),), generator=generator), lengths)


@pytest.fixture(scope="session", name="build")
def build_fixture():
    return build


@pytest.fixture(scope="session", name="tokens")
def tokens_fixture():
    return tokens
