"""The training loop. It knows no task by name, no file format and no family."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.batching.batches import BatchPlan
from regard.data.batching.examples import Inputs
from regard.data.batching.prefetch import Prefetcher
from regard.data.batching.sequences import token_batches
from regard.errors import RegardError, pluralize
from regard.tasks.inference import RowSource, ScoreResult
from regard.text.flat_tokens import Ints
from regard.training.engine.adamw import row_gradients
from regard.training.engine.averaging import WeightAverage
from regard.training.engine.compilation import CompileSwitch
from regard.training.engine.distributed.fsdp import is_shard, shard
from regard.training.engine.memory import free_memory
from regard.training.engine.optimizer import build_optimizer, named_state, restore_state, set_lr
from regard.training.engine.packed_inputs import PackedInputs
from regard.training.engine.schedule import lr_factor
from regard.training.engine.speed import SpeedMeter
from regard.training.engine.stepper import Stepper
from regard.training.job import FitResult, TrainingJob
from regard.training.output.metrics_log import Recorder, TrainingEvent
from regard.training.resume.position import TrainingPosition
from regard.training.resume.state import (
    load_state,
    put_weights,
    remove_partial_state,
    save_sharded,
    save_state,
    weights_of,
)

PLENTY = 20  # times the size of the best weights that must be free on a GPU for a copy there
MIN_SAVE_SECONDS = 20  # writing a state takes a second or more: short runs need none between their evaluations
UNCHECKED = (
    "the state was saved by an older version of regard without digests, so damage to its files cannot be noticed"
)


class Stopped(RegardError):
    """The training was stopped by a signal, and its state is saved."""

    def __init__(self, words: str, *, signal: int, advice: str = "Go on from here with --resume.") -> None:
        super().__init__(f"{words} {advice}")
        self.words = words
        self.signal = signal


def fit(job: TrainingJob) -> FitResult:
    """Train to the end, or until stopped; from the saved state if the job is resumed.

    If the training is repeated, each begins from the weights that the network has now, and the network gets the mean of
    their last weights (Wortsman et al., "Model soups", 2022). Only the first one is scored and saved.
    """
    repeats = job.repeats
    if repeats == 1:
        return _Loop(job).run()
    loop = _Loop(job, initial={name: tensor.clone() for name, tensor in weights_of(job.network).items()})
    result = loop.run()
    if job.score is not None and result.best_step < result.steps:
        loop.report_note("an earlier step than the last was the best: the training is not repeated")
        return result
    mean = {name: tensor.clone() for name, tensor in weights_of(job.network).items()}
    for number in range(2, repeats + 1):
        again = loop.repeat(number)
        result = replace(result, seconds=result.seconds + again.seconds, tokens=result.tokens + again.tokens)
        for name, tensor in weights_of(job.network).items():
            if tensor.is_floating_point():
                mean[name].lerp_(tensor, 1 / number)
    put_weights(job.network, mean)
    return replace(result, repeats=repeats)


class _Loop:
    def __init__(self, job: TrainingJob, *, initial: Mapping[str, Tensor] | None = None) -> None:
        """initial: the weights that each training begins from, if it is repeated, unless the state has them."""
        self.job, self.settings, self.world = job, job.settings, job.world
        self.initial = initial
        self.device = next(job.network.parameters()).device
        assert self.settings.lr is not None
        if self.world.ranks > 1:
            freeze_unused(job)
        sharded = self.settings.fsdp and self.world.ranks > 1
        if sharded:
            shard(job.network)
        self.optimizer = build_optimizer(job.network, self.settings, lr=self.settings.lr)
        wrapped = None if sharded else self.world.wrap(job.network)
        self.stepper = Stepper(
            job.network,
            job.task,
            self.optimizer,
            clip=self.settings.max_grad_norm,
            dtype=job.dtype,
            compile=job.compile == "yes",
            record=job.record,
            wrapped=wrapped,
            ranks=1 if sharded else self.world.ranks,
            gather=self.world.all_reduce if self.world.ranks > 1 else None,
            distillation=job.distillation,
        )
        self.average = WeightAverage(job.network, fraction=job.average, steps=job.steps)
        self.shape, self.epoch_steps = job.shape, 1
        self.at = TrainingPosition(
            micro_tokens=job.micro_batch_tokens or self.settings.micro_batch_tokens or job.batches.tokens
        )
        self.best: dict[str, Tensor] | None = None
        self.early, self.first = False, 0.0
        self.compilation = CompileSwitch(job.compile, job.compile_cost, self.stepper)
        self.signal: int | None = None
        self.saved = time.monotonic()
        if self.world.is_main_process and job.writes_files:
            remove_partial_state(job.folder, state=not job.resume)
        self.world.barrier()
        checked = self._resume() if job.resume else True
        self.earlier_seconds = self.at.seconds
        self.record = job.progress if self.world.is_main_process else None
        if self.world.is_main_process and job.writes_files:
            self.record = Recorder(job.folder, step=self.at.step, progress=job.progress)
        if not checked:
            self._report("note", text=UNCHECKED)

    def run(self) -> FitResult:
        began = time.monotonic() - self.at.seconds
        self.speed = SpeedMeter()
        self.job.network.train()
        if self.job.memory is not None and self.at.step == 0:
            expected = self.job.memory.total(self.at.micro_tokens)
            self._report("plan", tokens_at_once=self.at.micro_tokens, bytes=expected, **asdict(self.job.memory))
        if self.at.step == 0 and self.job.score_initial and self.job.score is not None:
            self._score()
        alone = self.world.ranks == 1 and self.job.compile == "no"
        with self._signals(), row_gradients(self.job.network) if alone else contextlib.nullcontext():
            while not self._over():
                try:
                    self._epoch(began)
                except torch.OutOfMemoryError as error:
                    self._smaller(error)
        if self.best is not None:
            put_weights(self.job.network, self.best)
        else:
            self.average.swap()
        self.job.network.eval()
        skipped, _ = self.stepper.guard.counts()
        return FitResult(
            self.at.step,
            self.at.tokens,
            self.at.seconds,
            self.at.best,
            self.at.best_step,
            skipped,
            self.early,
            self.first,
            self.speed.mean(),
            self.compilation.reason,
            earlier_seconds=self.earlier_seconds,
        )

    def repeat(self, number: int) -> FitResult:
        """Train again from the initial weights with another seed. Nothing is scored or saved; steps stay recorded."""
        assert self.initial is not None
        first = self.job
        seed = self.settings.seed + 1
        self.settings = replace(self.settings, seed=seed)
        batches = replace(first.batches, seed=seed)
        self.job = replace(
            first, settings=self.settings, batches=batches, memory=None, score=None, writes_files=False, resume=False
        )
        put_weights(self.job.network, self.initial)
        for state in self.optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()
        self.stepper.reset()
        self.at = TrainingPosition(micro_tokens=self.at.micro_tokens)
        self.best, self.early = None, False
        self.record = self.job.progress if self.world.is_main_process else None
        text = f"training again with another seed ({number} of {self.settings.repeats})"
        self._report("note", text=text, repeat=True)
        try:
            return self.run()
        except Stopped as stop:
            words = f"stopped while training again; the state of the first training is saved in {self.job.folder}."
            raise Stopped(words, signal=stop.signal) from None

    def report_note(self, text: str) -> None:
        """Inform the caller."""
        self._report("note", text=text)

    def _over(self) -> bool:
        return self.early or self.at.step >= self.job.steps

    def _epoch(self, began: float) -> None:
        """Train from the current position in the epoch to its end, or to the end of the training."""
        rows = self.job.source.epoch(self.at.epoch)
        plan = BatchPlan(rows.lengths, self.job.batches, epoch=self.at.epoch, step=self.at.in_epoch)
        self.epoch_steps = plan.steps
        feed = iter(Prefetcher(self._parts(rows, plan, self.at.step), device=self._feed_to()))
        try:
            for parts, tokens in feed:
                with self.compilation.timed(self.speed):
                    self._step(parts)
                if not self.first:
                    self._done_first(began)
                self.speed.step(tokens)
                if note := self.compilation.after_step(self.speed, self.job.steps - self.at.step):
                    self._report("note", text=note)
                self.at.step += 1
                self.average.update(self.at.step)
                self.at.in_epoch += 1
                self.at.tokens += tokens
                self.at.seconds = time.monotonic() - began
                self._after(ended=self.at.in_epoch == plan.steps)
                if self._over():
                    return
        finally:
            feed.close()
        self.at.epoch, self.at.in_epoch = self.at.epoch + 1, 0

    def _done_first(self, began: float) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        self.first = time.monotonic() - began - self.at.seconds

    def _feed_to(self) -> torch.device:
        return torch.device("cpu") if self.job.record else self.device

    def _parts(
        self, rows: RowSource, plan: BatchPlan, first: int
    ) -> Iterator[tuple[Sequence[Inputs | PackedInputs], int]]:
        """The micro-batches of each step, from step `first` on, made in a background thread."""
        lengths, micro = np.asarray(rows.lengths), self.at.micro_tokens
        for step, batch in enumerate(plan, first):
            mine = self.world.rank_rows(batch.rows)
            idle = len(mine) == 0
            mine = batch.rows[:1] if idle else mine
            sizes = lengths[mine].tolist()
            parts = [rows.take(mine[cut]) for cut in token_batches(sizes, max(micro, max(sizes)))]
            parts = [part.without_targets() for part in parts] if idle else parts
            parts += [parts[0].without_targets()] * (self._most_parts(batch.rows, lengths) - len(parts))
            if self.shape is not None:
                parts = [part.fixed(**vars(self.shape)) for part in parts]
            if self._rdrop(step):
                parts = [part.twice() for part in parts]
            if self.job.record:
                yield [PackedInputs.of(part, pinned=True) for part in parts], int(lengths[batch.rows].sum())
                continue
            yield parts, int(lengths[batch.rows].sum())

    def _rdrop(self, step: int) -> float:
        """The weight of R-Drop in a step."""
        first = (self.settings.rdrop_start or 0.0) * self.job.steps
        return (self.settings.rdrop or 0.0) if step >= first else 0.0

    def _most_parts(self, rows: Ints, lengths: npt.NDArray[Any]) -> int:
        """The largest number of micro-batches of any rank: with sharded weights all ranks need as many."""
        if not self.stepper.sharded:
            return 0
        shares = [lengths[rows[rank :: self.world.ranks]].tolist() for rank in range(self.world.ranks)]
        return max(len(list(token_batches(sizes, max(self.at.micro_tokens, *sizes)))) for sizes in shares if sizes)

    def _step(self, parts: Sequence[Inputs | PackedInputs]) -> None:
        settings, step = self.settings, self.at.step
        assert settings.lr is not None
        assert settings.schedule is not None
        assert settings.warmup is not None
        seed_step(settings.seed, step, self.world.rank, self.device)
        set_lr(self.optimizer, settings.lr * lr_factor(settings.schedule, step, self.job.steps, settings.warmup))
        self.stepper.set_rdrop(self._rdrop(step))
        for number, part in enumerate(parts):
            with self.stepper.unsynced(last=number == len(parts) - 1):
                self.stepper.part(part)
        self.stepper.update()

    def _after(self, *, ended: bool) -> None:
        """Log, score, save the state or stop after a step, as is due."""
        settings, step = self.settings, self.at.step
        last = step == self.job.steps
        if step % settings.log_every == 0 or last:
            self._log()
        due = last or (step % settings.eval_every == 0 if settings.eval_every else ended)
        with self.speed.pause():
            if due and self.job.score is not None:
                self._score()
            if self._should_save(due=due, last=last):
                self.save()  # at the end too: final scores and the model folder come later
        if self._should_stop():
            self.save()
            raise Stopped(
                f"stopped at step {step} of {self.job.steps}; the state is saved in {self.job.folder}.",
                signal=self.signal or signal.SIGTERM,
            )

    def _should_save(self, *, due: bool, last: bool) -> bool:
        """Every `save_every` steps; else at evaluations, unless the last state is only seconds old."""
        if not self.job.writes_files:
            return False
        if self.settings.save_every:
            return last or due or self.at.step % self.settings.save_every == 0
        recent = time.monotonic() - self.saved < MIN_SAVE_SECONDS and self.world.ranks == 1
        return last or (due and not recent)

    def _should_stop(self) -> bool:
        """Ranks agree on the step they stop at; on GPUs only at logged steps, since it waits for the device."""
        if self.world.ranks > 1 and self.device.type == "cuda" and self.at.step % self.settings.log_every:
            return False
        return self.world.any_rank(self.signal is not None, self.device)

    def _log(self) -> None:
        loss = self.stepper.mean_loss()
        skipped, row = self.stepper.guard.counts()
        if new := skipped - self.at.skipped:
            steps = "1 step was" if new == 1 else f"{new} steps were"
            self._report("note", text=f"{steps} skipped: the loss was not finite, or far above its mean")
        self.at.skipped = skipped
        speed = self.speed.report()
        norm = float(self.stepper.numbers[2])
        self._report("log", loss=loss, norm=norm, rate=self._rate(), tokens_per_second=speed, skipped=skipped)
        if row >= self.settings.max_bad_steps:
            self.save()
            raise RegardError(
                f"the last {row} steps in a row had a loss that is not finite or far above its mean, and were "
                f"skipped; the training is stopped at step {self.at.step}, with the last good weights saved in "
                f"{self.job.folder}. Begin again with a lower lr (now {self.settings.lr:g}), a longer warm-up, or "
                "fp32; or continue after these steps with --resume."
            )

    def _rate(self) -> float:
        return float(max(group["lr"] for group in self.optimizer.param_groups))

    def _score(self) -> None:
        """Score the averaged weights, or the latest if there is no average yet; keep them if they are the best."""
        assert self.job.score is not None
        network = self.job.network.eval()
        with self.average.swapped():
            result = self.job.score()
            improves = self._improves(result)
            keeps_last = not improves and self._keeps_last(result)
            better = improves or keeps_last
            if better:
                self.best = _aside({name: tensor.detach() for name, tensor in weights_of(network).items()})
        network.train()
        if better:
            self.at.best, self.at.best_loss = result.value, result.loss
            self.at.best_step, self.at.worse = self.at.step, 0
        else:
            self.at.worse += 1
        self.early = 0 < self.settings.patience <= self.at.worse
        scores = {name: score.value for name, score in result.scores.items()}
        last = {"keeps_last": True} if keeps_last else {}
        self._report("score", dev_loss=result.loss, main=result.main, best=better, scores=scores, **last)

    def _improves(self, result: ScoreResult) -> bool:
        """Of equal scores the lower loss decides: BLEU may stay 0 for long, and so may accuracy."""
        if self.at.best is None:
            return True
        if result.value == self.at.best:
            return self.at.best_loss is not None and result.loss < self.at.best_loss
        return result.value > self.at.best if result.higher else result.value < self.at.best

    def _keeps_last(self, result: ScoreResult) -> bool:
        """Whether these are the last weights, and the best score is within the 95 % interval of theirs.

        The last weights, trained with the lowest learning rates, are better on new data than an earlier epoch with the
        highest score on few validation rows (benchmarks/defaults.md).
        """
        if not self.job.prefer_last or self.at.step < self.job.steps or self.at.best is None:
            return False
        interval = result.scores[result.main]
        return interval.high >= self.at.best if result.higher else interval.low <= self.at.best

    def _report(self, kind: str, **values: Any) -> None:
        if self.record is not None:
            epoch = self.at.epoch + self.at.in_epoch / self.epoch_steps
            self.record(TrainingEvent(kind, self.at.step, self.job.steps, values, epoch=epoch))

    def save(self) -> None:
        """The state as it is now."""
        if not self.job.writes_files:
            return
        self.at.guard, self.at.losses = self.stepper.guard.state.tolist(), self.stepper.total.tolist()
        if self.settings.fsdp:
            optimizer = named_state(self.job.network, self.optimizer)
            state = {
                "weights": weights_of(self.job.network),
                "optimizer": optimizer,
                "best": self.best or {},
                "average": self.average.means,
            }
            tensors = {f"{kind}|{name}": tensor for kind, part in state.items() for name, tensor in part.items()}
            save_sharded(self.job.folder, self.at, tensors=tensors, identity=self.job.identity, world=self.world)
        elif self.world.is_main_process:
            is_over = self.at.step >= self.job.steps  # then only the weights that are kept are needed again
            final = self.best if is_over else None
            save_state(
                self.job.folder,
                self.at,
                weights=weights_of(self.job.network) if final is None else final,
                optimizer={} if is_over else named_state(self.job.network, self.optimizer),
                best=self.best,
                average=self.average.means if final is None else {},
                identity=self.job.identity,
                initial=self.initial if self.job.saves_initial else None,
            )
        self.world.barrier()
        self.saved = time.monotonic()

    def _resume(self) -> bool:
        """Go on from the saved state, where there is one; whether its digests were checked."""
        saved = load_state(self.job.folder, self.job.identity, weights_of(self.job.network), self.world)
        if saved is None:
            return True
        put_weights(self.job.network, saved.weights)
        restore_state(self.job.network, self.optimizer, saved.optimizer)
        self.average.restore(saved.average)
        self.at, self.best = saved.position, saved.best
        if saved.initial is not None:
            self.initial = saved.initial
        self.at.micro_tokens = min(self.settings.micro_batch_tokens or self.at.micro_tokens, self.at.micro_tokens)
        if self.shape is not None:
            self.shape = self.shape.cut(min(self.shape.tokens, self.at.micro_tokens))
        self.early = 0 < self.settings.patience <= self.at.worse
        self.stepper.guard.state.copy_(torch.tensor(self.at.guard, dtype=torch.float64))
        self.stepper.total.copy_(torch.tensor(self.at.losses, dtype=torch.float64))
        return saved.checked

    def _smaller(self, error: torch.OutOfMemoryError) -> None:
        """Half as much in memory at once, twice as many parts: the step stays the same."""
        if self.world.ranks > 1:  # the others wait for this one in the middle of a step
            raise RegardError(
                f"a rank has not enough memory for {pluralize(self.at.micro_tokens, 'token')} at once. Go on with "
                f"--resume --micro-batch-tokens {-(-self.at.micro_tokens // 2)}: the steps stay the same."
            ) from error
        fewer = -(-self.at.micro_tokens // 2)
        if self.shape is not None:
            fewer = -(-fewer // self.shape.max_length) * self.shape.max_length
        if fewer >= self.at.micro_tokens or not self.job.task.can_split:
            raise RegardError(
                f"the GPU has not enough memory for {pluralize(self.at.micro_tokens, 'token')} at once. "
                "Use a smaller batch_tokens, gradient_checkpointing=true, or a smaller model."
            ) from error
        self.optimizer.zero_grad(set_to_none=True)
        self.stepper.restart()
        torch.cuda.empty_cache()
        self.at.micro_tokens = fewer
        if self.shape is not None:
            self.shape = self.shape.cut(fewer)
        self._report(
            "note", text=f"out of memory: {self.at.micro_tokens} tokens at once from now on, the step as it was"
        )

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM stop after the current step; a second one stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, _: Any) -> None:
            if self.signal is not None:
                raise KeyboardInterrupt
            self.signal = number

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _aside(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies on their device if it has plenty of memory, which takes no time; else on the CPU."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    device = next(iter(tensors.values())).device
    free = free_memory(device) or 0
    if device.type == "cuda" and size * PLENTY > free:
        return {name: tensor.clone() if is_shard(tensor) else tensor.cpu() for name, tensor in tensors.items()}
    return {name: tensor.clone() for name, tensor in tensors.items()}


def freeze_unused(job: TrainingJob) -> None:
    """Freeze parameters that the loss does not depend on: ranks would wait for their gradients."""
    rows = job.source.epoch(0)
    inputs = rows.take(np.array([np.asarray(rows.lengths).argmin()])).to(next(job.network.parameters()).device)
    prepared = job.task.prepare(inputs)
    job.task.loss(job.network(prepared.tokens, prepared.target, at=prepared.at), prepared).sum.backward()
    for parameter in job.network.parameters():
        parameter.requires_grad_(parameter.grad is not None)
        parameter.grad = None


def seed_step(seed: int, step: int, rank: int = 0, device: torch.device | None = None) -> None:
    """Seed a step by its number alone, so that a resumed run needs no stored random state.

    Only the generators of the CPU and of the device are seeded: `torch.manual_seed` takes five times as long.
    """
    words = hashlib.blake2b(f"{seed} {step} {rank}".encode(), digest_size=7).digest()
    number = int.from_bytes(words, "little")
    torch.default_generator.manual_seed(number)
    if device is not None and device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(number)
