"""A network whose blocks run in ONNX Runtime.

Texts of equal length run together, so that nothing is padded. The heads run in torch, in fp32.

Shapes: N tokens, M of them whose hidden states are needed, B sequences, T tokens of each, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.device import needs_reduced_range
from regard.errors import FolderError, MissingExtra
from regard.foreign import file_errors
from regard.model.heads import TOKEN_HEADS, ClassifierHead
from regard.model.kernels.layout import Layout, MaskFunction
from regard.model.positions import check_length
from regard.model.transformer import Output, Transformer
from regard.ragged import Ragged
from regard.text.flat_tokens import ranges

if TYPE_CHECKING:
    import onnxruntime

HIDDEN = "last_hidden_state"
SEGMENTS = "token_type_ids"
Integers = npt.NDArray[np.int64]
SPINNING: ContextVar[bool] = ContextVar("spinning", default=True)  # whether threads of new sessions wait busily
RUN_TOKENS = 4096  # tokens of one call at most: activations then stay in the cache of the CPU


@contextmanager
def without_spinning() -> Iterator[None]:
    """Open sessions whose threads sleep while they have no work: other processes then have the cores.

    Threads that spin answer one text a little sooner on idle cores. Beside other processes they halve the throughput.
    """
    token = SPINNING.set(False)
    try:
        yield
    finally:
        SPINNING.reset(token)


def open_session(
    file: Path | bytes, *, threads: int | None = None, may_overflow: bool = True
) -> onnxruntime.InferenceSession:
    """An ONNX file, or its content, as a session of ONNX Runtime on the CPU, with as many threads as torch uses.

    may_overflow: whether sums of int8 products may overflow on some CPUs, as those of 8-bit weights do. ONNX Runtime
    then converts the weights, which it cannot if several layers share them.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("running ONNX files", "onnx") from error

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads() if threads is None else threads
    if not SPINNING.get():
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_mem_pattern = False  # memory would grow with every new length
    options.log_severity_level = 3
    if may_overflow and needs_reduced_range():
        options.add_session_config_entry("session.x64quantprecision", "1")  # 8-bit products overflow without VNNI
    providers = ["CPUExecutionProvider"]
    if isinstance(file, bytes):
        return onnxruntime.InferenceSession(file, options, providers=providers)
    with file_errors(file, fix="Write it again with regard export."):
        return onnxruntime.InferenceSession(str(file), options, providers=providers)


class OnnxTransformer(Transformer):
    """An encoder whose hidden states come from an ONNX file; weights, config and heads are those of the network.

    What the file does not hold runs in torch: other layers than the last, hooks and mask functions.
    """

    can_skip_tokens = False  # whether the last layer can compute some of the tokens alone

    def __init__(self, network: Transformer, session: onnxruntime.InferenceSession) -> None:
        nn.Module.__init__(self)
        self.config = network.config
        self.encoder = network.encoder
        self.decoder = network.decoder
        self.heads = network.heads
        self.eval()
        self.session = session
        self.inputs = {item.name for item in session.get_inputs()}
        # Collecting them in every call would take longer than a layer.
        self.hooks = [hooks for one in self.modules() for hooks in (one._forward_hooks, one._forward_pre_hooks)]
        self.token_head = _linear_token_head(self.heads)
        if HIDDEN not in {item.name for item in session.get_outputs()}:
            raise FolderError(
                f"the ONNX file has no output {HIDDEN}, so it was not written by regard. Write it again: regard export."
            )

    def read(self, batch: Ragged, *, layers: int | None = None) -> Tensor:
        if layers is not None or self.has_hooks():
            return super().read(batch, layers=layers)
        return self.run_session(batch)

    def forward(
        self, batch: Ragged, target: Ragged | None = None, *, at: Tensor | None = None, mask: MaskFunction | None = None
    ) -> Output:
        if target is not None or mask is not None or self.has_hooks():
            return super().forward(batch, target, at=at, mask=mask)
        needed = self.needed_positions(batch, at)
        return self.apply_heads(self.run_session(batch, at=needed), batch, at=at, needed=needed)

    def needed_positions(self, batch: Ragged, at: Tensor | None) -> Tensor | None:
        """The positions whose hidden states are computed; None for all, as a file does that cannot skip tokens."""
        return None if at is None or not self.can_skip_tokens else self.positions_of_heads(batch, at)

    def apply_heads(
        self,
        hidden_ND: Tensor,
        batch: Ragged,
        *,
        at: Tensor | None,
        needed: Tensor | None,
        memory: Tensor | None = None,
    ) -> Output:
        """As in torch. A small head of tokens is computed with numpy: torch would wake its threads, which then wait
        for more work and take a core away from those of ONNX Runtime."""
        if self.token_head is None:
            return super().apply_heads(hidden_ND, batch, at=at, needed=needed, memory=memory)
        chosen_ND = hidden_ND
        if at is not None and needed is None:
            chosen_ND = torch.from_numpy(hidden_ND.numpy()[at.numpy()])
        weight_DC, bias_C = self.token_head
        return Output(chosen_ND, torch.from_numpy(chosen_ND.numpy() @ weight_DC + bias_C), None, None, memory)

    def has_hooks(self) -> bool:
        """Whether any forward hook is registered."""
        return any(self.hooks)

    def run_session(self, batch: Ragged, *, at: Tensor | None = None) -> Tensor:
        """(N, D) hidden states of a batch, or (M, D) at some positions of it, from one call for each length.

        A sequence without any of these positions is not computed.
        """
        check_length(batch.max_length, self.config.max_tokens)
        if at is not None and not len(at):
            return torch.empty(0, self.config.width)
        ids_N = batch.ids.numpy()
        segments_N = None if batch.segments is None else batch.segments.numpy()
        at_M = None if at is None else at.numpy().astype(np.int64, copy=False)
        if len(batch) == 1 and 0 < batch.tokens == batch.max_length:
            return torch.from_numpy(self._run(ids_N[None], None if segments_N is None else segments_N[None], at_M))
        bounds = batch.bounds.numpy().astype(np.int64)
        positions = None if at_M is None else _PositionsBySequence(at_M, bounds)
        hidden_MD = np.zeros((batch.tokens if at_M is None else len(at_M), self.config.width), np.float32)
        for group in Layout.for_self_attention(batch.bounds, batch.max_length).groups:
            sequences = np.array(group.rows) if positions is None else positions.needed(np.array(group.rows))
            sequences_per_call = max(RUN_TOKENS // group.queries, 1)
            for begin in range(0, len(sequences), sequences_per_call):
                chosen_B = sequences[begin : begin + sequences_per_call]
                index_BT = bounds[chosen_B, None] + np.arange(group.queries)
                segments_BT = None if segments_N is None else segments_N[index_BT]
                rows, places = None, index_BT.ravel()
                if positions is not None:
                    rows, places = positions.rows_of(chosen_B, group.queries)
                hidden_MD[places] = self._run(ids_N[index_BT], segments_BT, rows)
        return torch.from_numpy(hidden_MD)

    def _run(self, ids_BT: Integers, segments_BT: Integers | None, rows: Integers | None) -> npt.NDArray[np.float32]:
        """(B * T, D) hidden states of sequences of equal length, or those of some rows."""
        hidden = self.session.run([HIDDEN], self.feed(ids_BT, segments_BT, rows))[0]
        flat_ND: npt.NDArray[np.float32] = hidden.reshape(-1, hidden.shape[-1])
        return flat_ND

    def feed(
        self, ids_BT: Integers, segments_BT: Integers | None, rows: Integers | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """The inputs of the file for sequences of equal length.

        rows: those of (B * T, D) that are needed, None for all; a file that cannot skip tokens computes all.
        """
        feed = {"input_ids": ids_BT, "attention_mask": np.ones_like(ids_BT)}
        if SEGMENTS in self.inputs:
            feed[SEGMENTS] = np.zeros_like(ids_BT) if segments_BT is None else segments_BT
        return {name: value for name, value in feed.items() if name in self.inputs}


class _PositionsBySequence:
    """Positions of a flat batch, in any order, grouped by the sequence that they belong to."""

    def __init__(self, at_M: Integers, bounds: Integers) -> None:
        sequence_M = np.searchsorted(bounds, at_M, side="right") - 1
        self.offset_M = at_M - bounds[sequence_M]  # in its sequence
        self.order = np.argsort(sequence_M, kind="stable")
        self.counts_B = np.bincount(sequence_M, minlength=len(bounds) - 1)
        self.starts_B = np.cumsum(self.counts_B) - self.counts_B

    def needed(self, sequences: Integers) -> Integers:
        """Those of the sequences that have any of the positions."""
        return sequences[self.counts_B[sequences] > 0]

    def rows_of(self, sequences: Integers, length: int) -> tuple[Integers, Integers]:
        """The rows of the positions in sequences of this length one after the other, and their places in `at_M`."""
        counts = self.counts_B[sequences]
        places = self.order[ranges(self.starts_B[sequences], counts)]
        return np.repeat(np.arange(len(sequences)) * length, counts) + self.offset_M[places], places


def _linear_token_head(heads: nn.ModuleDict) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None:
    """(D, C) weights and (C,) bias of the only head, if it is one linear layer for each token."""
    name = next(iter(heads), "")
    head = heads[name] if len(heads) == 1 and name in TOKEN_HEADS else None
    if not isinstance(head, ClassifierHead) or not isinstance(head.transform, nn.Identity):
        return None
    weight_CD, bias_C = (tensor.detach().float().numpy() for tensor in (head.output.weight, head.output.bias))
    return np.ascontiguousarray(weight_CD.T), bias_C
