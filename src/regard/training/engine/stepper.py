"""One step of training: forward and backward of its parts, then the update. As it is, compiled, or recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.data.batching.examples import Inputs
from regard.model.attention import Attention
from regard.model.kernels.compiled import compiled
from regard.model.kernels.cuda_graphs import CudaGraph
from regard.model.kernels.half_weights import HalfWeights
from regard.model.network import Network
from regard.tasks.task import Loss, Task
from regard.training.engine.adamw import allocate_state, gradients
from regard.training.engine.distillation import Distillation, LayerMatcher, distillation_loss
from regard.training.engine.distributed.fsdp import is_shard, local
from regard.training.engine.guard import LossGuard
from regard.training.engine.packed_inputs import PackedInputs
from regard.training.engine.rdrop import rdrop_loss

WARM = 3  # runs before a recording, so that nothing is made for the first time in it


@dataclass(frozen=True)
class BatchShape:
    """Fixed sizes of every part of a step, so that one graph serves them all."""

    tokens: int
    sequences: int
    max_length: int

    def cut(self, tokens: int) -> BatchShape:
        """A shape of fewer tokens; a rectangle stays one."""
        rectangle = self.sequences * self.max_length == self.tokens
        return BatchShape(tokens, tokens // self.max_length if rectangle else self.sequences, self.max_length)


class Stepper:
    """Sums of gradients over the parts of a step, divided once by how much was counted, then AdamW.

    `part` and `update` never wait for the device. With `record` both are recorded as CUDA graphs and replayed: a small
    network is bound by launches, not by arithmetic.
    """

    def __init__(
        self,
        network: Network,
        task: Task,
        optimizer: torch.optim.Optimizer,
        *,
        clip: float,
        dtype: torch.dtype = torch.float32,
        compile: bool = False,
        record: bool = False,
        wrapped: nn.Module | None = None,
        ranks: int = 1,
        gather: Callable[[Tensor], None] | None = None,
        distillation: Distillation | None = None,
    ) -> None:
        self.network, self.task, self.optimizer = network, task, optimizer
        self.run = wrapped if wrapped is not None else network
        self.clip, self.dtype, self.ranks, self.gather = clip, dtype, ranks, gather
        self.rdrop = 0.0  # if above 0, every part has its sequences twice
        self.distillation = distillation
        watches = distillation is not None and distillation.network is not None
        self.matcher = LayerMatcher(network, distillation) if watches and distillation is not None else None
        self.device = next(network.parameters()).device
        self.parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        self.unfelt = gradient_free_biases(network)
        self.sharded = any(is_shard(parameter) for parameter in self.parameters)
        self.felt = [(bias, effective_bias(bias, rows)) for bias, rows in self.unfelt] if self.sharded else []
        self.guard = LossGuard(self.device)
        self.sums = torch.zeros(2, dtype=torch.float32, device=self.device)  # loss and count of this step
        self.numbers = torch.zeros(3, dtype=torch.float64, device=self.device)  # loss, count, norm of the latest step
        self.total = torch.zeros(
            2, dtype=torch.float64, device=self.device
        )  # loss and count since the last call of mean_loss
        self.compute = compiled(self._loss, dynamic=False) if compile else self._loss
        self.record = record
        converts = record and not compile and wrapped is None and HalfWeights.pays(network, dtype)
        self.halves = HalfWeights(network, dtype) if converts else None
        self._part: _Recording | None = None
        self._update: CudaGraph | None = None

    def part(self, part: Inputs | PackedInputs) -> None:
        """Forward and backward of one part of the step. For a recorded step the part is packed, or packed here."""
        if not self.record:
            self._part_now(part.inputs if isinstance(part, PackedInputs) else part)
            return
        packed = part if isinstance(part, PackedInputs) else PackedInputs.of(part, pinned=False)
        if self._part is None:
            self._part = _Recording(self._part_now, packed.to(self.device), self._forget)
        self._part.replay(packed)

    def update(self) -> None:
        """The step itself, once all its parts are done."""
        if not self.record:
            self._update_now()
            return
        if self._update is None:
            self._update = self._record_update()
        self._update.replay()

    def set_rdrop(self, weight: float) -> None:
        """Set the weight of R-Drop. If it changes, a recorded step is recorded again: its parts have another length."""
        if weight != self.rdrop:
            self.rdrop, self._part = weight, None

    def compile(self) -> None:
        """Compile the forward and backward pass from the next part on."""
        self._part = self.halves = None  # a compiled pass converts in its own kernels
        torch.cuda.empty_cache()  # the memory of the recording
        self.compute = compiled(self._loss, dynamic=False)

    def reset(self) -> None:
        """Forget the losses of a training, before another one with the same network."""
        for tensor in (self.sums, self.numbers, self.total, self.guard.state):
            tensor.zero_()

    def restart(self) -> None:
        """Forget a step that was not finished, and what was recorded for its shape."""
        self.sums.zero_()
        self._part = self._update = None

    @contextlib.contextmanager
    def unsynced(self, *, last: bool) -> Iterator[None]:
        """Ranks wait for each other only after the last part of a step."""
        quiet = getattr(self.run, "no_sync", None)
        with contextlib.nullcontext() if last or quiet is None else quiet():
            yield

    def mean_loss(self) -> float:
        """Mean loss since the last call; waits for the device."""
        total, count = self.total.tolist()
        self.total.zero_()
        return total / count if count else float("nan")

    def _loss(self, inputs: Inputs) -> Loss:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            prepared = self.task.prepare(inputs)
            output = self.run(prepared.tokens, prepared.target, at=prepared.at)
        if self.rdrop:
            return rdrop_loss(self.task, output, prepared, self.rdrop)
        if self.distillation is None:
            return self.task.loss(output, prepared)
        loss = distillation_loss(self.task, output, prepared, self.distillation)
        if self.matcher is None:
            return loss
        return Loss(loss.sum + loss.count * self.matcher.loss(prepared.tokens, self.dtype), loss.count)

    def _part_now(self, inputs: Inputs) -> None:
        with contextlib.nullcontext() if self.halves is None else self.halves.installed():
            loss = self.compute(inputs)
            loss.sum.backward()
        self.sums += torch.stack((loss.sum.detach().float(), loss.count.detach().float()))

    def _update_now(self) -> None:
        if self.gather is not None:
            self.gather(self.sums)
        grads = gradients(self.parameters)
        allocate_state(self.optimizer)
        if self.sharded:
            self._update_shards(grads)
            return
        if still := [bias.grad[rows] for bias, rows in self.unfelt if bias.grad is not None]:
            torch._foreach_zero_(still)
        count = self.sums[1].clamp(min=1e-12)
        mean = self.sums[0] / count
        summed = torch.nn.utils.get_total_norm(grads)
        norm = _whole(summed) * self.ranks / count
        scale = count / self.ranks
        if self.clip:
            scale = scale * (norm / self.clip).clamp(min=1.0)
        bad = self.guard.should_skip(mean, norm)
        self.optimizer.grad_scale, self.optimizer.found_inf = scale.float(), bad  # type: ignore[attr-defined]  # read by fused steps
        self.optimizer.step()
        self.numbers.copy_(torch.stack((mean, self.sums[1], norm)))
        self.total += torch.where(bad > 0, 0.0, self.sums.double())
        self._clear(grads)
        self.sums.zero_()

    def _clear(self, grads: list[Tensor]) -> None:
        """Zero gradients if a CUDA graph or other ranks refer to the tensors by address; else None."""
        if self.record or self.run is not self.network or self.device.type != "cpu":
            torch._foreach_zero_(grads)
            return
        for parameter in self.parameters:
            parameter.grad = None

    def _update_shards(self, grads: list[Tensor]) -> None:
        """The same on what this rank holds. Fused steps cannot scale or skip shards, so it is done here."""
        for bias, mask in self.felt:
            if bias.grad is not None:
                local(bias.grad).mul_(mask)
        count = self.sums[1].clamp(min=1e-12)
        mean = self.sums[0] / count
        local_grads = [local(grad) for grad in grads]
        norm = _whole(torch.nn.utils.get_total_norm(grads)) / count
        scale = count * (norm / self.clip).clamp(min=1.0) if self.clip else count
        bad = self.guard.should_skip(mean, norm)
        if not bool(bad):
            torch._foreach_div_(local_grads, scale)
            self.optimizer.step()
        self.numbers.copy_(torch.stack((mean, self.sums[1], norm)))
        self.total += torch.where(bad > 0, 0.0, self.sums.double())
        torch._foreach_zero_(local_grads)
        self.sums.zero_()

    def _forget(self) -> None:
        """Undo what a trial run added up."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.zero_()
        self.sums.zero_()

    def _record_update(self) -> CudaGraph:
        """Record the update; the trial before it is made with a loss that is skipped, so that no weight moves."""
        sums = self.sums.clone()
        grads = [parameter.grad.clone() for parameter in self.parameters if parameter.grad is not None]
        guard = self.guard.state.clone()
        total = self.total.clone()

        def skipped_update() -> None:
            self.sums.fill_(float("nan"))
            self._update_now()

        def restore_guard() -> None:
            self.guard.state.copy_(guard)

        graph = CudaGraph(self._update_now, runs=1, warm_up=skipped_update, restore=restore_guard)
        self.sums.copy_(sums)
        self.total.copy_(total)
        self.guard.state.copy_(guard)
        for parameter, grad in zip((p for p in self.parameters if p.grad is not None), grads, strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(grad)
        return graph


def gradient_free_biases(network: nn.Module) -> list[tuple[nn.Parameter, slice]]:
    """Biases of keys: their gradient is zero but for rounding, and AdamW would make steps of that rounding."""
    biases = [module.redundant_key_bias() for module in network.modules() if isinstance(module, Attention)]
    return [bias for bias in biases if bias is not None and bias[0].requires_grad]


def effective_bias(bias: nn.Parameter, rows: slice) -> Tensor:
    """1 where a shard of the bias is felt, else 0."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(bias, DTensor)
    mask = torch.ones(bias.shape, device=bias.device)
    mask[rows] = 0.0
    return local(distribute_tensor(mask, bias.device_mesh, bias.placements))


def _whole(norm: Tensor) -> Tensor:
    """The norm over all ranks, where each holds a part of every gradient."""
    full = getattr(norm, "full_tensor", None)
    return norm if full is None else full()


class _Recording:
    """A call recorded for inputs of one shape. The random numbers of its trial run are drawn again in the first replay.

    A step then has the same random numbers whether it is the first one to be recorded or replayed.
    """

    def __init__(self, call: Callable[[Inputs], None], packed: PackedInputs, forget: Callable[[], None]) -> None:
        self.buffer = packed.buffer
        generator = torch.cuda.default_generators[self.buffer.device.index or 0]
        state = generator.get_state()
        self.graph = CudaGraph(lambda: call(packed.inputs), runs=WARM, restore=forget)
        generator.set_state(state)
        forget()

    def replay(self, packed: PackedInputs) -> None:
        self.buffer.copy_(packed.buffer, non_blocking=True)
        self.graph.replay()
