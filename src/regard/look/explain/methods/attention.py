"""Attention weights of the last layer, averaged over heads, as an explanation: known to be a weak one.

Attention weights say where information was read from, not whether it mattered for the answer (Jain and Wallace 2019).
In a translation these are the weights of the source words when a word is translated: cross-attention of a Transformer,
the alignment of a recurrent network.

Shapes: H heads, T tokens that attend, S tokens attended to.
"""

from __future__ import annotations

from torch import Tensor

from regard.config import BagConfig
from regard.look.explain.methods.method import Attribution, Method, MethodOptions, weights_of_target
from regard.look.explain.scorer import Scorer, Variant, VariantBatch
from regard.look.explain.tokenized import InputSequence
from regard.model import hooks as taps
from regard.model.mean_layer import ends_with_mean
from regard.model.network import Network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork


def why_not(network: Network) -> str | None:
    """Recurrent encoder-decoders have an alignment."""
    if isinstance(network.config, BagConfig):
        return "a baseline without Transformer blocks has no attention"
    if isinstance(network, BidirectionalNetwork):
        return "a recurrent language model has no attention"
    if isinstance(network, RecurrentNetwork) and (network.encoder is None or network.decoder.align is None):
        return "this recurrent network has no attention"
    return None


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    return weights_of_target(scorer, last_weights)


def last_weights(scorer: Scorer, sequence: InputSequence) -> Tensor:
    """(T, S) weights of the last layer, the mean of its heads; of a translation those of the source tokens.

    A last layer that averages all tokens (see `regard.model.mean_layer`) has nearly equal weights: they are multiplied
    by those of the layer before.
    """
    network = scorer.network
    variant = Variant(sequence.ids, sequence.segments, sequence.decoder_ids, scorer.target.positions)
    batch = VariantBatch.of([variant], scorer.device)
    if isinstance(network, RecurrentNetwork):
        assert batch.decoder is not None
        return network.alignment(batch.tokens, batch.decoder)[0]
    cross = batch.decoder is not None
    last = [-2, -1] if ends_with_mean(network) and network.config.layers > 1 else [-1]
    layers = taps.attention(network, batch.tokens, layers=last, cross=cross, target=batch.decoder)
    means = [weights_HTS.float().mean(0) for (weights_HTS,) in layers.values()]
    return means[0] if len(means) == 1 else means[1] @ means[0]


METHOD = Method("attention", "attention of the last layer", explain, why_not, signed=False)
