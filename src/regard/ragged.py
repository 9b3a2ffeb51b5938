"""The batch of all packages: the flat tokens of all sequences, and the bounds of each sequence.

There is no padding and so no attention mask. Sequence `b` is `ids[bounds[b] : bounds[b + 1]]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.errors import InputError, pluralize


@dataclass(frozen=True, eq=False)
class Ragged:
    """A batch of sequences of different lengths, stored without padding.

    `max_length` is a Python number because kernels need it on the host, and reading it from a GPU would wait for it.
    It may be larger than the longest sequence (a compiled step uses a fixed value).
    """

    ids: Tensor  # (N,) int64
    bounds: Tensor  # (B + 1,) int32, from 0 to N, never decreasing
    positions: Tensor  # (N,) int64, position of each token in its sequence
    max_length: int
    segments: Tensor | None = None  # (N,) int64

    @classmethod
    def of(
        cls,
        sequences: Sequence[Sequence[int]],
        *,
        segments: Sequence[Sequence[int]] | None = None,
        device: torch.device | str = "cpu",
    ) -> Ragged:
        """A batch from lists of ids."""
        lengths = [len(sequence) for sequence in sequences]
        flat = torch.tensor([token for sequence in sequences for token in sequence], dtype=torch.int64)
        kinds = None
        if segments is not None:
            _same_lengths(lengths, [len(row) for row in segments])
            kinds = torch.tensor([kind for row in segments for kind in row], dtype=torch.int64)
        return cls.from_flat(flat, lengths, segments=kinds).to(device)

    @classmethod
    def from_flat(
        cls, ids: Tensor, lengths: Sequence[int] | npt.NDArray[np.int64], *, segments: Tensor | None = None
    ) -> Ragged:
        """A batch from flat ids and the lengths of the sequences.

        Small arrays are faster in numpy than in torch, and a batch is made for every training step.
        """
        counts = np.asarray(lengths, np.int64)
        bounds = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, dtype=np.int32, out=bounds[1:])
        total = int(bounds[-1])
        if total != ids.numel():
            raise InputError(f"the lengths add up to {total} tokens, but {ids.numel()} tokens were given.")
        positions = np.arange(total) - np.repeat(bounds[:-1], counts)
        return cls(
            ids=ids,
            bounds=torch.from_numpy(bounds).to(ids.device),
            positions=torch.from_numpy(positions).to(ids.device),
            max_length=int(counts.max(initial=0)),
            segments=segments,
        )

    def __len__(self) -> int:
        return self.bounds.numel() - 1

    @property
    def tokens(self) -> int:
        return self.ids.numel()

    @property
    def lengths(self) -> Tensor:
        return self.bounds.diff()

    @property
    def sequence_ids(self) -> Tensor:
        """(N,) the sequence each token belongs to."""
        rows = torch.arange(len(self), device=self.bounds.device)
        return torch.repeat_interleave(rows, self.lengths, output_size=self.tokens)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Ragged:
        def moved(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=non_blocking)

        return replace(
            self,
            ids=moved(self.ids),
            bounds=moved(self.bounds),
            positions=moved(self.positions),
            segments=None if self.segments is None else moved(self.segments),
        )

    def split(self, values: Tensor) -> list[Tensor]:
        """Split a tensor with one row per token into one tensor per sequence."""
        if values.shape[0] != self.tokens:
            raise InputError(f"the batch has {self.tokens} tokens, but the tensor has {values.shape[0]} rows.")
        return list(torch.split(values, self.lengths.tolist()))

    def first(self) -> Tensor:
        """(B,) index of the first token of each sequence; any valid index for an empty one."""
        return self.bounds[:-1].long().clamp(max=max(self.tokens - 1, 0))

    def last(self) -> Tensor:
        """(B,) index of the last token of each sequence; any valid index for an empty one."""
        return (self.bounds[1:].long() - 1).clamp(min=0)

    def mean(self, values_ND: Tensor) -> Tensor:
        """(B, D) mean over the tokens of each sequence; zeros for an empty one."""
        exact_ND = values_ND.to(torch.promote_types(values_ND.dtype, torch.float32))  # bf16 cannot hold large sums
        if values_ND.is_cuda and self.tokens and not torch.compiler.is_compiling():
            sums_BD = sums_in_order(exact_ND, self.lengths)
        else:
            sums_BD = exact_ND.new_zeros(len(self), values_ND.shape[1])
            sums_BD = sums_BD.index_add_(0, self.sequence_ids, exact_ND)
        return (sums_BD / self.lengths.clamp(min=1).unsqueeze(1)).to(values_ND.dtype)

    def max(self, values_ND: Tensor) -> Tensor:
        """(B, D) maximum over the tokens of each sequence; zeros for an empty one."""
        # One torch operation: the backward pass of a compiled version would compare rounded with unrounded numbers,
        # find no maximum, and divide by zero.
        lengths = self.lengths.long()
        found_BD = torch.segment_reduce(values_ND.contiguous(), "max", lengths=lengths, unsafe=True)
        return found_BD.masked_fill((lengths == 0).unsqueeze(1), 0.0)

    def select(self, rows: Sequence[int]) -> Ragged:
        """The given sequences, in the given order."""
        count = len(self)
        wrong = [row for row in rows if not -count <= row < count]
        if wrong:
            raise InputError(f"sequence {wrong[0]} does not exist: the batch has {count}.")
        edges = self.bounds.tolist()
        spans = [(edges[row % count], edges[row % count + 1]) for row in rows]
        index = torch.cat([torch.arange(start, end) for start, end in spans] or [torch.arange(0)])
        index = index.to(self.ids.device)
        selected = Ragged.from_flat(self.ids[index], [end - start for start, end in spans])
        return replace(
            selected,
            positions=self.positions[index],
            segments=None if self.segments is None else self.segments[index],
        )

    @staticmethod
    def concatenate(batches: Sequence[Ragged]) -> Ragged:
        """One batch with the sequences of all, in order."""
        if not batches:
            raise InputError("no batch was given to concatenate; expected at least one.")
        with_segments = {batch.segments is not None for batch in batches}
        if len(with_segments) > 1:
            raise InputError("some batches have segments and some have none; give segments to all or to none.")
        lengths = [length for batch in batches for length in batch.lengths.tolist()]
        joined = Ragged.from_flat(torch.cat([batch.ids for batch in batches]), lengths)
        kinds = [batch.segments for batch in batches if batch.segments is not None]
        return replace(
            joined,
            positions=torch.cat([batch.positions for batch in batches]),
            segments=torch.cat(kinds) if kinds else None,
        )

    def twice(self) -> Ragged:
        """This batch followed by itself; a fixed `max_length` is kept."""
        return replace(Ragged.concatenate([self, self]), max_length=self.max_length)

    def fixed(self, *, tokens: int, sequences: int, max_length: int) -> Ragged:
        """The same batch in fixed shapes, so that one compiled graph serves every batch.

        The rest of the tokens repeats tokens of the batch as extra sequences, and the rest of the bounds are empty
        sequences: the first `len(self)` sequences are unchanged, and no padding token exists. Ignore the results of
        the extra sequences.
        """
        if self.tokens == 0:
            raise InputError("a batch without tokens cannot have a fixed shape. Leave it out.")
        spare = tokens - self.tokens
        rows = -(-spare // max_length) if spare > 0 else 0
        if spare < 0 or len(self) + rows > sequences or self.max_length > max_length:
            raise InputError(
                f"a batch of {pluralize(self.tokens, 'token')} in {pluralize(len(self), 'sequence')} "
                f"(longest {self.max_length}) does not fit "
                f"the fixed shape of {pluralize(tokens, 'token')} in {pluralize(sequences, 'sequence')} "
                f"(longest {max_length}). "
                "Raise the budget or put fewer sequences into the batch."
            )
        here = self.to("cpu")
        ends = np.arange(1, sequences - len(self) + 1, dtype=np.int32) * np.int32(max_length)
        ends = np.minimum(ends, np.int32(spare)) + np.int32(self.tokens)
        extra_positions = np.arange(spare) % max_length
        padded = Ragged(
            ids=torch.from_numpy(np.resize(here.ids.numpy(), tokens)),
            bounds=torch.from_numpy(np.concatenate((here.bounds.numpy(), ends))),
            positions=torch.from_numpy(np.concatenate((here.positions.numpy(), extra_positions))),
            max_length=max_length,
            segments=None if here.segments is None else torch.from_numpy(np.resize(here.segments.numpy(), tokens)),
        )
        return padded if self.ids.device.type == "cpu" else padded.to(self.ids.device)


def sums_in_order(values_ND: Tensor, lengths_B: Tensor) -> Tensor:
    """(B, D) sums over the tokens of each sequence, in their order: the same bits every time.

    On a GPU, `index_add_` adds in any order, so that two runs of a training that uses these sums would differ.
    """
    return torch.segment_reduce(values_ND.contiguous(), "sum", lengths=lengths_B.long(), unsafe=True)


def _same_lengths(expected: list[int], actual: list[int]) -> None:
    if len(expected) != len(actual):
        raise InputError(f"{pluralize(len(expected), 'sequence')} of ids but {len(actual)} of segments; give one each.")
    for row, (ids, kinds) in enumerate(zip(expected, actual, strict=True)):
        if ids != kinds:
            raise InputError(
                f"sequence {row} has {pluralize(ids, 'id')} but {pluralize(kinds, 'segment')}; "
                "give one segment per token."
            )
