"""Hooks: record or replace the output of any part of a network while it runs.

A name is the path of a module in the network: `encoder.layers.3.attention` (output of attention),
`encoder.layers.3.attention.q` (queries as the kernel gets them), `.k`, `.v` (with a cache: of the new tokens),
`.mix` (output of each head), `encoder.layers.3.feedforward`, `encoder.layers.3` (hidden states after the block),
`encoder.embeddings`. `*` matches one part of a name.

    with record(network, "encoder.layers.*") as outputs:
        network(batch)
    outputs["encoder.layers.0"]                 # (N, D)

    with replace(network, {"encoder.layers.2.attention.mix": lambda x: x * head_mask}):
        network(batch)                           # with some heads removed

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
    """Returns its input: gives a name to a value that no other module returns."""


def has_hooks(network: nn.Module) -> bool:
    """Whether any forward hook is registered."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def hook_names(network: nn.Module) -> list[str]:
    """All names that can be recorded or replaced: modules that return one tensor."""
    without_output = (nn.ModuleList, nn.ModuleDict, AttentionScore, Rotary)
    return [name for name, module in network.named_modules() if name and not isinstance(module, without_output)]


def find_modules(network: nn.Module, pattern: str) -> list[tuple[str, nn.Module]]:
    """The modules whose names match; an error with the most similar name if there is none."""
    known = dict(network.named_modules())
    matches = [(name, known[name]) for name in hook_names(network) if fnmatch.fnmatchcase(name, pattern)]
    if "*" in pattern:  # a star matches one part of a name, not several
        matches = [(name, module) for name, module in matches if name.count(".") == pattern.count(".")]
    if not matches:
        raise InputError(f'no part of this network is named "{pattern}".{did_you_mean(pattern, hook_names(network))}')
    return matches


class RecordedOutputs(Mapping[str, Tensor]):
    """Recorded outputs by name: of the last run, or of all with `runs(name)` (shared layers run several times)."""

    def __init__(self) -> None:
        self._runs: dict[str, list[Tensor]] = {}

    def add(self, name: str, value: Tensor) -> None:
        self._runs.setdefault(name, []).append(value)

    def runs(self, name: str) -> list[Tensor]:
        if name not in self._runs:
            raise KeyError(f'"{name}" was not recorded.{did_you_mean(name, self._runs)}')
        return self._runs[name]

    def __getitem__(self, name: str) -> Tensor:
        return self.runs(name)[-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


@contextmanager
def record(network: nn.Module, *patterns: str, detach: bool = True) -> Iterator[RecordedOutputs]:
    """Record the outputs of the named modules while the network runs."""
    outputs = RecordedOutputs()
    with ExitStack() as hooks:
        for name, module in (match for pattern in patterns for match in find_modules(network, pattern)):

            def keep(_: nn.Module, __: Any, value: Tensor, name: str = name) -> None:
                outputs.add(name, value.detach() if detach else value)

            hooks.callback(module.register_forward_hook(keep).remove)
        yield outputs


@contextmanager
def replace(network: nn.Module, changes: Mapping[str, Replacement]) -> Iterator[None]:
    """Replace the outputs of the named modules by a tensor, or by a function of the output."""
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
    """Record queries, keys and the call of each named attention: everything that its weights depend on."""
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
    heads_per_kv = q_NHK.shape[1] // k_MGK.shape[-2]
    head_H = torch.tensor(_numbers("head", heads, q_NHK.shape[1]), dtype=torch.int64, device=q_NHK.device)
    q_HTK = q_NHK[call.layout.spans(row)[0]][:, head_H].transpose(0, 1)
    k_HSK = call.layout.keys_of(k_MGK, row)[:, head_H // heads_per_kv].transpose(0, 1)
    each = k_HSK.shape[0] * k_HSK.shape[1] * (1 if call.can_fuse else k_HSK.shape[2])  # numbers per query
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
    """(H, T, S) attention weights of each chosen sequence, by layer, after one run of the network on its fast kernel.

    Layers are counted as they run, also if they share weights. `stack` is "encoder", "decoder", "main" (the one with
    the output) or "reader" (the one that reads the text). `cross` selects cross-attention of the decoder.
    """
    name, part = _stack(network, stack, cross=cross)
    chosen = _numbers("layer", layers, part.depth)
    rows = _numbers("sequence", sequences, len(batch))
    kind = "cross" if cross else "attention"
    paths = {i: f"{name}.layers.{part.layer_index(i)}.{kind}" for i in range(part.depth)}
    with record_attention_inputs(network, sorted({paths[i] for i in chosen})) as seen:
        if target is None:
            part(batch, layers=max(chosen, default=-1) + 1)  # later layers are not needed
        else:
            network(batch, target)
    weights: dict[int, list[Tensor]] = {}
    for i in chosen:
        run = [paths[j] for j in range(i)].count(paths[i])
        q_NHK, k_MGK, call = seen[paths[i]][run]
        weights[i] = [attention_weights(q_NHK, k_MGK, call, sequence=row, heads=heads) for row in rows]
    return weights


def _stack(network: nn.Module, stack: str, *, cross: bool) -> tuple[str, Any]:
    """The stack of that name with its path; "main" has the output, "reader" reads the text."""
    both = {name: part for name in ("decoder", "encoder") if (part := getattr(network, name, None)) is not None}
    name = {"main": next(iter(both), stack), "reader": next(reversed(both), stack)}.get(stack, stack)
    if name not in both:
        raise InputError(f'this network has no stack "{name}".{did_you_mean(name, ["main", "reader", *both])}')
    if cross and (len(both) < 2 or name == "encoder"):
        raise InputError("only the decoder of an encoder-decoder has cross-attention.")
    return name, both[name]


def _numbers(what: str, requested: Sequence[int] | None, count: int) -> list[int]:
    """The given indices, all when None; negative ones count from the end."""
    for number in requested or ():
        if not -count <= number < count:
            raise InputError(f"{what} {number} does not exist: there are {count}, counted from 0.")
    return list(range(count)) if requested is None else [number % count for number in requested]
