"""Sequences with their targets: flat arrays in memory, and batches of them by row."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.corpus.masking import IGNORE  # for float targets the ignored value is NaN
from regard.errors import InputError
from regard.ragged import Ragged
from regard.text.flat_tokens import Ints, ranges

TEACHER = "teacher"  # soft targets: the log-probabilities, or the logits, of a teacher
LEARN = "learn"  # per token: 0 if it can be a target, IGNORE if it is only context

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a network and the targets of a task for one batch. Sequences after the first `rows` are padding."""

    tokens: Ragged
    by_sequence: Mapping[str, Tensor] = field(default_factory=dict)  # (B, ...) each
    by_token: Mapping[str, Tensor] = field(default_factory=dict)  # (N,) each
    at: Tensor | None = None  # flat positions whose logits are computed; None for all
    target: Ragged | None = None  # the decoder's sequences, for encoder-decoder models
    by_target: Mapping[str, Tensor] = field(default_factory=dict)  # one value per target token
    by_position: Mapping[str, Tensor] = field(default_factory=dict)  # one value per position of `at`
    rows: int = 0
    fixed_shape: bool = False  # padded to a fixed shape; then random sizes must not be used

    def __getitem__(self, name: str) -> Tensor:
        for tensors in self._all_tensors:
            if name in tensors:
                return tensors[name]
        raise KeyError(name)

    def __contains__(self, name: str) -> bool:
        return any(name in tensors for tensors in self._all_tensors)

    @property
    def _all_tensors(self) -> tuple[Mapping[str, Tensor], ...]:
        return self.by_sequence, self.by_token, self.by_target, self.by_position

    def to(self, device: torch.device | str) -> Inputs:
        def moved(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}

        return replace(
            self,
            tokens=self.tokens.to(device, non_blocking=True),
            by_sequence=moved(self.by_sequence),
            by_token=moved(self.by_token),
            at=None if self.at is None else self.at.to(device, non_blocking=True),
            target=None if self.target is None else self.target.to(device, non_blocking=True),
            by_target=moved(self.by_target),
            by_position=moved(self.by_position),
        )

    def selected(self, keep_N: Tensor) -> Inputs:
        """The same batch where only the logits of these tokens are computed; what belongs to them moves along."""
        at = keep_N.nonzero().squeeze(1)
        return replace(self, at=at, by_token={}, by_position={name: of[at] for name, of in self.by_token.items()})

    def fixed(self, *, tokens: int, sequences: int, max_length: int) -> Inputs:
        """The same batch padded to fixed shapes; padding has no target, so it does not contribute to the loss."""
        if self.target is not None or self.at is not None:
            raise InputError(
                "a batch with a decoder's target or with selected positions cannot be padded to a fixed shape."
            )
        return replace(
            self,
            tokens=self.tokens.fixed(tokens=tokens, sequences=sequences, max_length=max_length),
            by_sequence={name: _padded(tensor, sequences) for name, tensor in self.by_sequence.items()},
            by_token={name: _padded(tensor, tokens) for name, tensor in self.by_token.items()},
            fixed_shape=True,
        )

    def twice(self) -> Inputs:
        """This batch followed by a copy: the first half of every output is the batch's, the second the copy's."""

        def doubled(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: torch.cat((tensor, tensor)) for name, tensor in tensors.items()}

        if self.at is not None:
            raise InputError("a batch with selected positions cannot be repeated.")
        return replace(
            self,
            tokens=self.tokens.twice(),
            by_sequence=doubled(self.by_sequence),
            by_token=doubled(self.by_token),
            target=None if self.target is None else self.target.twice(),
            by_target=doubled(self.by_target),
            rows=2 * self.rows,
        )

    def without_targets(self) -> Inputs:
        """The same batch without targets, for a process without a row in this step."""

        def ignored(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: torch.full_like(tensor, _ignore_value(tensor)) for name, tensor in tensors.items()}

        return replace(
            self,
            by_sequence=ignored(self.by_sequence),
            by_token=ignored(self.by_token),
            by_target=ignored(self.by_target),
            rows=0,
        )


def _ignore_value(tensor: Tensor) -> float | int:
    return float("nan") if tensor.is_floating_point() else IGNORE


def _padded(tensor: Tensor, size: int) -> Tensor:
    values = tensor.numpy()
    out = np.full((size, *values.shape[1:]), _ignore_value(tensor), values.dtype)
    out[: len(values)] = values
    return torch.from_numpy(out)


@dataclass(frozen=True, eq=False)
class Examples:
    """Sequences of many records in flat arrays. A long text has several sequences, its windows, in order."""

    ids: npt.NDArray[np.int32]
    bounds: Ints
    owners: Ints  # the record of each row
    segments: npt.NDArray[np.uint8] | None = None
    by_sequence: Arrays = field(default_factory=dict)
    by_token: Arrays = field(default_factory=dict)
    target: Examples | None = None  # the decoder's sequences, one per row
    groups: Ints | None = None  # bounds of rows in sequences, if some rows have several sequences

    def __len__(self) -> int:
        return len(self.bounds if self.groups is None else self.groups) - 1

    @property
    def lengths(self) -> Ints:
        """Tokens of each row including its target: what it adds to the tokens of a batch."""
        own = np.diff(self.bounds if self.groups is None else self.bounds[self.groups])
        return own if self.target is None else own + self.target.lengths

    @property
    def max_length(self) -> int:
        return int(np.diff(self.bounds).max(initial=0))

    def epoch(self, number: int) -> Examples:
        """The sequences of an epoch: the same in every epoch."""
        return self

    def take(self, rows: Ints | Sequence[int]) -> Inputs:
        """The batch of these rows, in this order."""
        rows = np.asarray(rows, np.int64)
        if self.groups is not None:
            rows = ranges(self.groups[rows], self.groups[rows + 1] - self.groups[rows])
        flat, lengths = self.flat_positions(rows)
        kinds = None if self.segments is None else torch.from_numpy(self.segments[flat].astype(np.int64))
        inputs = Inputs(
            tokens=Ragged.from_flat(torch.from_numpy(self.ids[flat].astype(np.int64)), lengths, segments=kinds),
            by_sequence={name: torch.from_numpy(tensors[rows]) for name, tensors in self.by_sequence.items()},
            by_token={name: torch.from_numpy(tensors[flat]) for name, tensors in self.by_token.items()},
            rows=len(rows),
        )
        if self.target is None:
            return inputs
        targets = self.target.take(rows)
        return replace(inputs, target=targets.tokens, by_target=targets.by_token)

    def by_record(self, outputs: Sequence[Any], records: int) -> list[list[Any]]:
        """The outputs of the sequences of each record; there is one output for each sequence."""
        windows: list[list[Any]] = [[] for _ in range(records)]
        for owner, output in zip(self.owners.tolist(), outputs, strict=True):
            windows[owner].append(output)
        return windows

    def flat_positions(self, rows: Ints) -> tuple[Ints, Ints]:
        """Flat positions of the tokens of these sequences, and their lengths."""
        starts = self.bounds[rows]
        lengths = self.bounds[rows + 1] - starts
        return ranges(starts, lengths), lengths


def join_examples(parts: Sequence[Examples]) -> Examples:
    """The rows of several examples, one after the other; none of them may have targets. Owners are counted on."""
    first = parts[0]
    if any(part.target is not None for part in parts):
        raise InputError("examples with a decoder's target cannot be joined.")
    sequences = [len(part.bounds) - 1 for part in parts]
    tokens = [int(part.bounds[-1]) for part in parts]
    groups = None
    if any(part.groups is not None for part in parts):
        own = [np.arange(len(part.bounds)) if part.groups is None else part.groups for part in parts]
        groups = _joined_bounds(own, sequences)
    owners = [int(part.owners.max(initial=-1)) + 1 for part in parts]
    return Examples(
        ids=np.concatenate([part.ids for part in parts]),
        bounds=_joined_bounds([part.bounds for part in parts], tokens),
        owners=np.concatenate([part.owners + start for part, start in zip(parts, _starts(owners), strict=True)]),
        segments=None if first.segments is None else np.concatenate([_segments(part) for part in parts]),
        by_sequence={name: np.concatenate([part.by_sequence[name] for part in parts]) for name in first.by_sequence},
        by_token={name: np.concatenate([part.by_token[name] for part in parts]) for name in first.by_token},
        groups=groups,
    )


def _starts(sizes: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(sizes)[:-1].tolist()]


def _joined_bounds(parts: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    moved = [part[1:] + start for part, start in zip(parts, _starts(sizes), strict=True)]
    return np.concatenate([np.zeros(1, np.int64), *moved])


def _segments(part: Examples) -> npt.NDArray[np.uint8]:
    return np.zeros(len(part.ids), np.uint8) if part.segments is None else part.segments


class ExamplesBuilder:
    """Collects sequences into flat arrays, without Python objects per token."""

    def __init__(self, *, segments: bool = False) -> None:
        self.ids, self.bounds, self.owners = array("i"), array("q", [0]), array("q")
        self.groups = array("q", [0])
        self.segments = array("B") if segments else None
        self.by_sequence: dict[str, list[Any]] = {}
        self.by_token: dict[str, list[npt.NDArray[Any]]] = {}

    def add(
        self,
        owner: int,
        ids: Sequence[int],
        segments: Sequence[int] | None = None,
        *,
        by_sequence: Mapping[str, Any] | None = None,
        by_token: Mapping[str, npt.NDArray[Any]] | None = None,
        same_row: bool = False,
    ) -> None:
        """Add one sequence of a record, with its targets per sequence and per token.

        same_row: the sequence belongs to the row of the one before it, so that both are always in the same batch.
        """
        self.ids.extend(ids)
        self.bounds.append(len(self.ids))
        if same_row:
            self.groups[-1] += 1
        else:
            self.owners.append(owner)
            self.groups.append(self.groups[-1] + 1)
        if self.segments is not None:
            self.segments.extend(segments if segments is not None else bytes(len(ids)))
        for name, value in (by_sequence or {}).items():
            self.by_sequence.setdefault(name, []).append(value)
        for name, values in (by_token or {}).items():
            self.by_token.setdefault(name, []).append(values)

    def __len__(self) -> int:
        return len(self.owners)

    def build(self, *, target: Examples | None = None) -> Examples:
        return Examples(
            ids=np.array(self.ids, np.int32),
            bounds=np.array(self.bounds, np.int64),
            owners=np.array(self.owners, np.int64),
            segments=None if self.segments is None else np.array(self.segments, np.uint8),
            by_sequence={name: _array(values) for name, values in self.by_sequence.items()},
            by_token={name: np.concatenate(values) for name, values in self.by_token.items()},
            target=target,
            groups=None if len(self.groups) == len(self.bounds) else np.array(self.groups, np.int64),
        )


def _array(values: list[Any]) -> npt.NDArray[Any]:
    result = np.array(values)
    return result.astype(np.float32) if result.dtype == np.float64 else result
