"""Two-way tables between our names of tensors and other projects'.

A table maps a path of ours to a path of theirs, `{}` standing for the number of a layer. A path may name a module
(then `weight` and `bias` follow on both sides) or a tensor. Where theirs is a tuple, its tensors lie one after the
other in ours; `Turned` is stored transposed there; `Row` has a leading axis of one there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Transposed:
    """Stored there as (in, out)."""

    path: str


@dataclass(frozen=True)
class LeadingAxis:
    """Stored there as (1, n)."""

    path: str


HFName = str | tuple[str, ...] | Transposed | LeadingAxis
NameTable = Mapping[str, HFName]


@dataclass(frozen=True)
class TensorMapping:
    """Where a tensor of ours lies on their side, and how it is stored there."""

    names: tuple[str, ...]
    how: str = "same"

    def read(self, get: Callable[[str], Tensor]) -> Tensor:
        parts = [get(name) for name in self.names]
        if self.how == "turned" and parts[0].dim() == 2:
            return parts[0].T.contiguous()
        if self.how == "row":
            return parts[0].squeeze(0)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def write(self, ours: Tensor, sizes: Sequence[int] | None) -> dict[str, Tensor]:
        if self.how == "turned" and ours.dim() == 2:
            ours = ours.T
        elif self.how == "row":
            ours = ours.unsqueeze(0)
        parts = (ours,) if len(self.names) == 1 else ours.split(self._rows(len(ours), sizes))
        return {name: part.contiguous() for name, part in zip(self.names, parts, strict=True)}

    def shapes(self, ours: Sequence[int], sizes: Sequence[int] | None) -> list[tuple[int, ...]]:
        """The shape each of their tensors has for a tensor of ours."""
        shape = tuple(ours)
        if self.how == "turned" and len(shape) == 2:
            return [shape[::-1]]
        if self.how == "row":
            return [(1, *shape)]
        return [shape] if len(self.names) == 1 else [(rows, *shape[1:]) for rows in self._rows(shape[0], sizes)]

    def _rows(self, total: int, sizes: Sequence[int] | None) -> list[int]:
        return list(sizes or [total // len(self.names)] * len(self.names))


def find_mapping(ours: str, table: NameTable) -> TensorMapping | None:
    """Where a tensor of ours lies in the table; None where the table does not know it."""
    number = re.search(r"\.(\d+)\.", ours)
    general = ours if number is None else ours.replace(number.group(0), ".{}.", 1)
    path, _, leaf = general.rpartition(".")
    for key, end in ((general, ""), (path, f".{leaf}")):
        if key in table:
            theirs = table[key]
            how = "turned" if isinstance(theirs, Transposed) else "row" if isinstance(theirs, LeadingAxis) else "same"
            paths = (theirs.path,) if isinstance(theirs, Transposed | LeadingAxis) else theirs
            paths = (paths,) if isinstance(paths, str) else paths
            layer = "" if number is None else number.group(1)
            return TensorMapping(tuple(name.replace("{}", layer) + end for name in paths), how)
    return None


OLD_ENDINGS = {".gamma": ".weight", ".beta": ".bias"}


def normalize_name(name: str, prefix: str) -> str:
    """A stored name without the prefixes some files have, and with today's endings."""
    name = name.removeprefix("module.")
    name = name.removeprefix(prefix)
    for old, new in OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
