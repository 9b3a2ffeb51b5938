"""Name tables between our tensors and those in the files of other libraries.

A table maps our path to theirs, with `{}` for the number of a layer. A path names a module (then `weight` and `bias`
follow on both sides) or a tensor. If theirs is a tuple, our tensor is the concatenation of these tensors. `Transposed`
tensors are stored transposed, `LeadingAxis` tensors with a leading axis of size 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line reads the families without torch
    from torch import Tensor


@dataclass(frozen=True)
class Transposed:
    """Stored as (in, out); ours is (out, in)."""

    path: str


@dataclass(frozen=True)
class LeadingAxis:
    """Stored as (1, n); ours is (n,)."""

    path: str


HFName = str | tuple[str, ...] | Transposed | LeadingAxis
NameTable = Mapping[str, HFName]


@dataclass(frozen=True)
class TensorMapping:
    """The stored tensors that one of our tensors is made of, and how they are stored."""

    names: tuple[str, ...]
    storage: str = "same"  # "same", "transposed" or "leading axis"

    def read(self, get: Callable[[str], Tensor]) -> Tensor:
        parts = [get(name) for name in self.names]
        if self.storage == "transposed" and parts[0].dim() == 2:
            return parts[0].T.contiguous()
        if self.storage == "leading axis":
            return parts[0].squeeze(0)
        if len(parts) == 1:
            return parts[0]
        import torch

        return torch.cat(parts)

    def write(self, ours: Tensor, sizes: Sequence[int] | None) -> dict[str, Tensor]:
        if self.storage == "transposed" and ours.dim() == 2:
            ours = ours.T
        elif self.storage == "leading axis":
            ours = ours.unsqueeze(0)
        parts = (ours,) if len(self.names) == 1 else ours.split(self._rows(len(ours), sizes))
        return {name: part.contiguous() for name, part in zip(self.names, parts, strict=True)}

    def shapes(self, ours: Sequence[int], sizes: Sequence[int] | None) -> list[tuple[int, ...]]:
        """The shapes of the stored tensors for a shape of ours."""
        shape = tuple(ours)
        if self.storage == "transposed" and len(shape) == 2:
            return [shape[::-1]]
        if self.storage == "leading axis":
            return [(1, *shape)]
        return [shape] if len(self.names) == 1 else [(rows, *shape[1:]) for rows in self._rows(shape[0], sizes)]

    def _rows(self, total: int, sizes: Sequence[int] | None) -> list[int]:
        return list(sizes or [total // len(self.names)] * len(self.names))


def find_mapping(ours: str, table: NameTable) -> TensorMapping | None:
    """The mapping of one of our tensors; None if it is not in the table."""
    number = re.search(r"\.(\d+)\.", ours)
    general = ours if number is None else ours.replace(number.group(0), ".{}.", 1)
    path, _, leaf = general.rpartition(".")
    for key, end in ((general, ""), (path, f".{leaf}")):
        if key in table:
            theirs = table[key]
            storage = "same"
            if isinstance(theirs, Transposed):
                storage = "transposed"
            elif isinstance(theirs, LeadingAxis):
                storage = "leading axis"
            paths = (theirs.path,) if isinstance(theirs, Transposed | LeadingAxis) else theirs
            paths = (paths,) if isinstance(paths, str) else paths
            layer = "" if number is None else number.group(1)
            return TensorMapping(tuple(name.replace("{}", layer) + end for name in paths), storage)
    return None


OLD_ENDINGS = {".gamma": ".weight", ".beta": ".bias"}


def normalize_name(name: str, prefix: str) -> str:
    """A stored name without the prefixes that some files have, and with current endings."""
    name = name.removeprefix("module.")
    name = name.removeprefix(prefix)
    for old, new in OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
