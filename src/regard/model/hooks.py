"""Names for everything worth seeing inside a network, to look at it or to change it while it runs.

A name is the path of a module in the network: `encoder.layers.3.attention` (what attention adds),
`encoder.layers.3.attention.q` (queries as the kernel gets them), `.k`, `.v` (with a cache: of the tokens read now),
`.mix` (what each head brings back), `encoder.layers.3.feedforward`, `encoder.layers.3` (the stream after the block),
`encoder.embeddings`. `*` matches any one part of a name.

    with record(network, "encoder.layers.*") as seen:
        network(batch)
    seen["encoder.layers.0"]                    # (N, D)

    with replace(network, {"encoder.layers.2.attention.mix": lambda x: x * keep_heads}):
        network(batch)                           # as if those heads were not there

    attention(network, batch, layers=[2], heads=[0])[2][0]      # (1, T, T) weights of the first sequence
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from regard.errors import InputError, did_you_mean
from regard.model.kernels.dense import AttentionCall, sequence_weights
from regard.model.positions import Rotary
from regard.model.scores import AttentionScore
from regard.ragged import Ragged

Replacement: TypeAlias = Tensor | Callable[[Tensor], Tensor]
TILE = 1 << 22  # numbers of a weight matrix computed at a time


class HookPoint(nn.Identity):
    """Does nothing, and so gives a name to a value that no other module returns."""


def has_hooks(network: nn.Module) -> bool:
    """Whether anything is recorded, replaced or watched now."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def hook_names(network: nn.Module) -> list[str]:
    """Every name that can be recorded or replaced: of the parts that return one tensor."""
    silent = (nn.ModuleList, nn.ModuleDict, AttentionScore, Rotary)
    return [name for name, module in network.named_modules() if name and not isinstance(module, silent)]


def find_modules(network: nn.Module, pattern: str) -> list[tuple[str, nn.Module]]:
    """The modules whose names match; an error with the nearest name when none does."""
    known = dict(network.named_modules())
    found = [(name, known[name]) for name in hook_names(network) if fnmatch.fnmatchcase(name, pattern)]
    if "*" in pattern:  # a star stands for one part of a name, not for several
        found = [(name, module) for name, module in found if name.count(".") == pattern.count(".")]
    if not found:
        raise InputError(f'no part of this network is named "{pattern}".{did_you_mean(pattern, hook_names(network))}')
    return found


class RecordedOutputs(Mapping[str, Tensor]):
    """What was recorded: by name, the value of the last run; `runs(name)` for all runs (shared layers run often)."""

    def __init__(self) -> None:
        self._runs: dict[str, list[Tensor]] = {}

    def add(self, name: str, value: Tensor) -> None:
        self._runs.setdefault(name, []).append(value)

    def runs(self, name: str) -> list[Tensor]:
        if name not in self._runs:
            raise KeyError(f'"{name}" was not seen.{did_you_mean(name, self._runs)}')
        return self._runs[name]

    def __getitem__(self, name: str) -> Tensor:
        return self.runs(name)[-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


@contextmanager
def record(network: nn.Module, *patterns: str, detach: bool = True) -> Iterator[RecordedOutputs]:
    """Keep what the named parts return while the network runs."""
    seen = RecordedOutputs()
    with ExitStack() as hooks:
        for name, module in (found for pattern in patterns for found in find_modules(network, pattern)):

            def keep(_: nn.Module, __: Any, value: Tensor, name: str = name) -> None:
                seen.add(name, value.detach() if detach else value)

            hooks.callback(module.register_forward_hook(keep).remove)
        yield seen


@contextmanager
def replace(network: nn.Module, changes: Mapping[str, Replacement]) -> Iterator[None]:
    """Let the named parts return something else: a tensor, or a function of what they would have returned."""
    with ExitStack() as hooks:
        for pattern, change in changes.items():

            def put(_: nn.Module, __: Any, value: Tensor, change: Replacement = change) -> Tensor:
                new = change(value) if callable(change) else change
                if new.shape != value.shape:
                    raise InputError(
                        f"the replacement has the shape {tuple(new.shape)}, expected {tuple(value.shape)}."
                    )
                return new

            for _, module in find_modules(network, pattern):
                hooks.callback(module.register_forward_hook(put).remove)
        yield


@contextmanager
def record_attention_inputs(
    network: nn.Module, paths: Sequence[str]
) -> Iterator[dict[str, list[tuple[Tensor, Tensor, AttentionCall]]]]:
    """Keep queries, keys and the call of each named attention: all that its weights depend on."""
    seen: dict[str, list[tuple[Tensor, Tensor, AttentionCall]]] = {path: [] for path in paths}
    with ExitStack() as hooks:
        for path in paths:

            def keep(_: nn.Module, args: tuple[Tensor, Tensor, Tensor, AttentionCall], path: str = path) -> None:
                seen[path].append((args[0].detach(), args[1].detach(), args[3]))

            hooks.callback(network.get_submodule(f"{path}.mix").register_forward_pre_hook(keep).remove)
        yield seen


@torch.no_grad()
def attention_weights(
    q_NHK: Tensor, k_MGK: Tensor, call: AttentionCall, *, sequence: int, heads: Sequence[int] | None = None
) -> Tensor:
    """(H, T, S) attention weights of one sequence, recomputed from queries and keys in tiles of bounded size."""
    (row,) = _numbers("sequence", [sequence], len(call.layout))
    share = q_NHK.shape[1] // k_MGK.shape[-2]
    head_H = torch.tensor(_numbers("head", heads, q_NHK.shape[1]), dtype=torch.int64, device=q_NHK.device)
    q_HTK = q_NHK[call.layout.spans(row)[0]][:, head_H].transpose(0, 1)
    k_HSK = call.layout.keys_of(k_MGK, row)[:, head_H // share].transpose(0, 1)
    each = k_HSK.shape[0] * k_HSK.shape[1] * (1 if call.can_fuse else k_HSK.shape[2])  # numbers a query needs at once
    step = max(1, TILE // max(1, each))
    if step >= q_HTK.shape[1]:
        return sequence_weights(q_HTK, k_HSK, call, row=row, rows=slice(None), heads=head_H)
    out_HTS = q_NHK.new_empty(len(head_H), q_HTK.shape[1], k_HSK.shape[1])
    for start in range(0, q_HTK.shape[1], step):
        rows = slice(start, min(start + step, q_HTK.shape[1]))
        out_HTS[:, rows] = sequence_weights(q_HTK, k_HSK, call, row=row, rows=rows, heads=head_H)
    return out_HTS


@torch.no_grad()
def attention(
    network: nn.Module,
    batch: Ragged,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    sequences: Sequence[int] | None = None,
    stack: str = "main",
    cross: bool = False,
    target: Ragged | None = None,
) -> dict[int, list[Tensor]]:
    """(H, T, S) weights of each chosen sequence, by layer, after one run of the network on its fast kernel.

    A layer is the i-th to run, also where layers share their weights. `stack` is "encoder", "decoder", "main" (whose
    states come out) or "reader" (which reads the text). `cross` asks how the decoder looks at the source.
    """
    name, part = _stack(network, stack, cross=cross)
    chosen = _numbers("layer", layers, part.depth)
    rows = _numbers("sequence", sequences, len(batch))
    kind = "cross" if cross else "attention"
    paths = {i: f"{name}.layers.{part.layer_index(i)}.{kind}" for i in range(part.depth)}
    with record_attention_inputs(network, sorted({paths[i] for i in chosen})) as seen:
        if target is None:
            part(batch, layers=max(chosen, default=-1) + 1)  # what stands above is not needed
        else:
            network(batch, target)
    found: dict[int, list[Tensor]] = {}
    for i in chosen:
        run = [paths[j] for j in range(i)].count(paths[i])
        q_NHK, k_MGK, call = seen[paths[i]][run]
        found[i] = [attention_weights(q_NHK, k_MGK, call, sequence=row, heads=heads) for row in rows]
    return found


def _stack(network: nn.Module, stack: str, *, cross: bool) -> tuple[str, Any]:
    """The stack of that name with its path: "main" is the one whose states come out, "reader" the one that reads."""
    both = {name: part for name in ("decoder", "encoder") if (part := getattr(network, name, None)) is not None}
    name = {"main": next(iter(both), stack), "reader": next(reversed(both), stack)}.get(stack, stack)
    if name not in both:
        raise InputError(f'this network has no stack "{name}".{did_you_mean(name, ["main", "reader", *both])}')
    if cross and (len(both) < 2 or name == "encoder"):
        raise InputError("only the decoder beside an encoder has cross attention.")
    return name, both[name]


def _numbers(what: str, asked: Sequence[int] | None, count: int) -> list[int]:
    """Those asked for, all of them when None; negative numbers count from the end."""
    for number in asked or ():
        if not -count <= number < count:
            raise InputError(f"{what} {number} was asked for, but there are {count}, counted from 0.")
    return list(range(count)) if asked is None else [number % count for number in asked]
