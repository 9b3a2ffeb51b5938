"""The target of an explanation as a function of erased words, or of the vectors of the tokens.

Shapes: B variants of a text, T tokens of the text, S positions of a sequence (of the encoder, then of the decoder),
E width of the vectors, P positions of the target, C numbers that are read.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.batching.sequences import token_batches
from regard.errors import NotFinite
from regard.look.explain.exclusive import exclusive
from regard.look.explain.tokenized import InputSequence, TokenizedText
from regard.model.attention import AttentionKernel
from regard.model.network import Network
from regard.ragged import Ragged

if TYPE_CHECKING:
    from regard.look.explain.targets.target import Target
    from regard.text.tokenizer import Tokenizer

BATCH_TOKENS = 8192
GRADIENT_TOKENS = 4096  # of one forward and backward pass

Erased = NDArray[np.bool_]  # (B, T) true where a token is erased


@dataclass(frozen=True)
class Variant:
    """A sequence with some tokens erased, and where its target is read."""

    ids: Sequence[int]
    segments: Sequence[int] | None
    decoder_ids: Sequence[int] | None
    positions: Sequence[int]

    def __len__(self) -> int:
        return len(self.ids) + len(self.decoder_ids or ())


def target_values(
    network: Network, text: TokenizedText, target: Target, variants: Sequence[Sequence[Variant]] | None = None
) -> Tensor:
    """(B, C) what the target reads, the mean of the windows of each variant; of the text itself by default."""
    if variants is None:
        variants = [[Variant(s.ids, s.segments, s.decoder_ids, target.positions) for s in text.sequences]]
    flat = [variant for windows in variants for variant in windows]
    values: list[Tensor | None] = [None] * len(flat)
    lengths = [len(variant) for variant in flat]
    for rows in token_batches(lengths, max(BATCH_TOKENS, *lengths)):
        batch = VariantBatch.of([flat[row] for row in rows], next(network.parameters()).device)
        for row, value in zip(rows, batch.read(network, target), strict=True):
            values[row] = value
    stacked_NC = torch.stack([value for value in values if value is not None])
    if not bool(stacked_NC.isfinite().all()):
        raise NotFinite("this text")
    means_BC: Tensor = stacked_NC.unflatten(0, (len(variants), -1)).mean(1)
    return means_BC


@dataclass(frozen=True, eq=False)
class VariantBatch:
    """Variants as the batches of a network."""

    tokens: Ragged
    decoder: Ragged | None
    positions_BP: Tensor  # flat, in the batch that has the output

    @classmethod
    def equal(cls, sequence: InputSequence, ids_BS: Tensor, positions: Sequence[int]) -> VariantBatch:
        """Variants of one sequence that are all as long as itself. `ids_BS`: of the encoder, then of the decoder."""
        count, rows, device = len(sequence.ids), len(ids_BS), ids_BS.device
        segments = None
        if sequence.segments is not None:
            segments = torch.tensor(sequence.segments, device=device).repeat(rows)
        tokens = Ragged.from_flat(ids_BS[:, :count].flatten(), [count] * rows, segments=segments)
        decoder = None
        length = count
        if sequence.decoder_ids is not None:
            length = len(sequence.decoder_ids)
            decoder = Ragged.from_flat(ids_BS[:, count:].flatten(), [length] * rows)
        local_P = torch.tensor(list(positions), dtype=torch.int64, device=device)
        first_B1 = torch.arange(rows, device=device).unsqueeze(1) * length
        return cls(tokens, decoder, local_P + first_B1)

    @classmethod
    def of(cls, variants: Sequence[Variant], device: torch.device) -> VariantBatch:
        segments = [one.segments for one in variants if one.segments is not None]
        tokens = Ragged.of([one.ids for one in variants], segments=segments or None).to(device)
        decoder = None
        if variants[0].decoder_ids is not None:
            decoder = Ragged.of([one.decoder_ids or () for one in variants]).to(device)
        main = tokens if decoder is None else decoder
        local_BP = torch.tensor([list(one.positions) for one in variants], dtype=torch.int64, device=device)
        return cls(tokens, decoder, local_BP + main.bounds[:-1].long().unsqueeze(1))

    def read(self, network: Network, target: Target) -> Tensor:
        """(B, C) what the target reads."""
        output = network(self.tokens, self.decoder, at=target.at(self.positions_BP))
        main = self.tokens if self.decoder is None else self.decoder
        return target.read(output, main, self.positions_BP)


@dataclass(frozen=True, eq=False)
class Scorer:
    """A network, a text and a target.

    mask: the token that stands for an erased word; None if erased words are removed.
    filler: the token of a sequence whose words are all removed.
    """

    network: Network
    text: TokenizedText
    target: Target
    mask: int | None
    filler: int = 0

    @classmethod
    def of(cls, network: Network, tokenizer: Tokenizer, text: TokenizedText, target: Target) -> Scorer:
        """Words are masked in encoders whose tokenizer has a mask token, and removed in other networks."""
        is_encoder = network.config.kind == "encoder"
        special = tokenizer.special
        filler = next((special[role] for role in ("bos", "eos", "pad", "unk") if role in special), 0)
        return cls(network, text, target, tokenizer.mask if is_encoder else None, filler)

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def erased_by(self) -> str:
        return "removal" if self.mask is None else "mask"

    @torch.no_grad()
    def erased_values(self, erased_BT: Erased) -> Tensor:
        """(B, C) what the target reads with these tokens erased."""
        if self.mask is not None:
            return self._masked_values(torch.from_numpy(erased_BT).to(self.device), self.mask)
        variants = [[self._variant(one, row_T) for one in self.text.sequences] for row_T in erased_BT]
        return target_values(self.network, self.text, self.target, variants)

    def _masked_values(self, erased_BT: Tensor, mask: int) -> Tensor:
        """The same for sequences in which tokens are masked, so that all are equally long."""
        total_BC: Tensor | None = None
        for sequence in self.text.sequences:
            ids_S = torch.tensor(sequence.ids, device=self.device)
            index_S = torch.tensor(sequence.index, device=self.device)
            parts = []
            for some_BT in erased_BT.split(max(1, tokens_at_once(self.device, BATCH_TOKENS) // len(ids_S))):
                ids_BS = torch.where(some_BT[:, index_S], mask, ids_S)
                batch = VariantBatch.equal(sequence, ids_BS, self.target.positions)
                with for_equal_lengths(self.network):
                    parts.append(batch.read(self.network, self.target))
            values_BC = torch.cat(parts) / len(self.text.sequences)
            total_BC = values_BC if total_BC is None else total_BC + values_BC
        assert total_BC is not None
        if not bool(total_BC.isfinite().all()):
            raise NotFinite("this text")
        return total_BC

    def erased_scores(self, erased_BT: Erased) -> NDArray[np.float64]:
        """(B,) the score with these tokens erased."""
        return self.target.score(self.erased_values(erased_BT)).double().cpu().numpy()

    def erased_probabilities(self, erased_BT: Erased) -> NDArray[np.float64]:
        """(B,) the probability with these tokens erased; the score where the target has no probability."""
        values_BC = self.erased_values(erased_BT)
        chances_B = self.target.probability(values_BC)
        chosen_B = self.target.score(values_BC) if chances_B is None else chances_B
        return chosen_B.double().cpu().numpy()

    @property
    def nothing_erased(self) -> Erased:
        """(1, T)."""
        return np.zeros((1, len(self.text)), np.bool_)

    @property
    def all_erased(self) -> Erased:
        """(1, T) every token that may be erased."""
        return np.array([self.text.erasable], np.bool_)

    def word_masks(self, words: Sequence[int]) -> Erased:
        """(W, T) one row per word, true at its tokens."""
        erased = np.zeros((len(words), len(self.text)), np.bool_)
        for row, number in enumerate(words):
            erased[row, list(self.text.words[number].tokens)] = True
        return erased & self.all_erased

    def _variant(self, sequence: InputSequence, erased_T: NDArray[np.bool_]) -> Variant:
        gone_S = erased_T[list(sequence.index)].tolist()
        count = len(sequence.ids)
        if self.mask is not None:
            ids = [self.mask if gone else token for token, gone in zip(sequence.ids, gone_S[:count], strict=True)]
            return Variant(ids, sequence.segments, sequence.decoder_ids, self.target.positions)
        left = [i for i, gone in enumerate(gone_S[:count]) if not gone]
        ids = [sequence.ids[i] for i in left] or [self.filler]
        segments = None if sequence.segments is None else [sequence.segments[i] for i in left] or [0]
        decoder_ids = None
        main = gone_S[:count]
        if sequence.decoder_ids is not None:
            main = gone_S[count:]
            decoder_ids = [token for token, gone in zip(sequence.decoder_ids, main, strict=True) if not gone]
        # A position moves left by the number of tokens that were removed before it, and itself.
        positions = [max(position - sum(main[: position + 1]), 0) for position in self.target.positions]
        return Variant(ids, segments, decoder_ids, positions)

    def token_vectors(self, sequence: InputSequence) -> Tensor:
        """(S, E) the token embeddings of a sequence."""
        tables = embedding_modules(self.network)
        vectors = [tables[0].weight[torch.tensor(sequence.ids, device=self.device)]]
        if sequence.decoder_ids is not None:
            vectors.append(tables[-1].weight[torch.tensor(sequence.decoder_ids, device=self.device)])
        return torch.cat(vectors).detach()

    def baseline_vectors(self, sequence: InputSequence, vectors_SE: Tensor) -> Tensor:
        """(S, E) the same with erasable tokens replaced by the mask token's embedding.

        Without a mask token it is the mean embedding of all tokens: a zero vector has no direction, which norms need.
        """
        gone_S = torch.tensor([self.text.erasable[i] for i in sequence.index], device=self.device)
        tables = [tables.weight.detach() for tables in embedding_modules(self.network)]
        blanks = [table_VE.mean(0) if self.mask is None else table_VE[self.mask] for table_VE in tables]
        count = len(sequence.ids)
        blank_SE = torch.cat((blanks[0].expand(count, -1), blanks[-1].expand(len(vectors_SE) - count, -1)))
        return torch.where(gone_S.unsqueeze(1), blank_SE, vectors_SE)

    def score_vectors(self, sequence: InputSequence, x_BSE: Tensor) -> Tensor:
        """(B,) the score of a sequence with these token embeddings, for gradients."""
        ids_S = torch.tensor(sequence.all_ids, device=self.device)
        batch = VariantBatch.equal(sequence, ids_S.repeat(len(x_BSE), 1), self.target.positions)
        count = len(sequence.ids)
        encoder_ME, decoder_NE = x_BSE[:, :count].flatten(0, 1), x_BSE[:, count:].flatten(0, 1)
        with for_equal_lengths(self.network), replaced_vectors(self.network, batch, encoder_ME, decoder_NE):
            return self.target.score(batch.read(self.network, self.target))


def tokens_at_once(device: torch.device, on_cpu: int) -> int:
    """Tokens of a batch: more on a GPU."""
    return on_cpu if device.type == "cpu" else 8 * on_cpu


@contextmanager
def for_equal_lengths(network: nn.Module) -> Iterator[None]:
    """Let the attention of a network on a GPU use the kernel for sequences of equal length, which needs no compiler."""
    with exclusive(network):
        before = [(module, module.kernel) for module in network.modules() if isinstance(module, AttentionKernel)]
        try:
            for module, _ in before:
                module.kernel = "grouped"
            yield
        finally:
            for module, kernel in before:
                module.kernel = kernel


def embedding_modules(network: Network) -> list[nn.Embedding]:
    """The token embeddings of the encoder and the decoder, as far as there are any; both may be the same."""
    stacks: list[Any] = [stack for stack in (network.encoder, network.decoder) if stack is not None]
    return [getattr(stack, "embeddings", stack).tokens for stack in stacks]


@contextmanager
def replaced_vectors(network: Network, batch: VariantBatch, x_ME: Tensor, x_NE: Tensor) -> Iterator[None]:
    """Token embeddings of the encoder (or the only stack) and of the decoder, replaced while the network runs.

    Not by hooks: with a hook, the last layer would compute what the target does not need.
    """
    sources = [(batch.tokens.ids, x_ME)]
    if batch.decoder is not None:
        sources.append((batch.decoder.ids, x_NE))

    def replaced(module: nn.Embedding, ids: Tensor) -> Tensor:
        for known, vectors in sources:
            if known is ids:
                return vectors
        return nn.Embedding.forward(module, ids)

    with ExitStack() as undo:
        for module in {id(module): module for module in embedding_modules(network)}.values():
            module.forward = functools.partial(replaced, module)  # type: ignore[method-assign]
            undo.callback(delattr, module, "forward")
        yield
