"""A network whose blocks run in ONNX Runtime.

Texts of equal length run together, so that nothing is padded. The heads run in torch, in fp32.

Shapes: N tokens, B sequences, T tokens of each, D width.
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

from regard.device import int8_support
from regard.errors import FolderError, MissingExtra
from regard.foreign import file_errors
from regard.model.heads import TOKEN_HEADS, ClassifierHead
from regard.model.kernels.layout import Layout, MaskFunction
from regard.model.positions import check_length
from regard.model.transformer import Output, Transformer
from regard.ragged import Ragged

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


def open_session(file: Path | bytes, *, threads: int | None = None) -> onnxruntime.InferenceSession:
    """An ONNX file, or its content, as a session of ONNX Runtime on the CPU, with as many threads as torch uses."""
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
    if int8_support() == "reduced":
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

    can_skip_tokens = False  # whether the last layer can compute the first token of each text alone

    def __init__(self, network: Transformer, session: onnxruntime.InferenceSession) -> None:
        nn.Module.__init__(self)
        self.config = network.config
        self.encoder = network.encoder
        self.decoder = network.decoder
        self.heads = network.heads
        self.eval()
        self.session = session
        self.inputs = {item.name for item in session.get_inputs()}
        self.hookable = tuple(self.modules())  # collecting them in every call would take longer than a layer
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
        if at is not None and not len(at) and self.can_skip_tokens and self.reads_first_tokens:
            return self.apply_heads(self.run_session(batch, first=True), batch, at=at, needed=at)
        return self.apply_heads(self.run_session(batch), batch, at=at, needed=None)

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
        name = next(iter(self.heads), "")
        head = self.heads[name] if len(self.heads) == 1 and name in TOKEN_HEADS else None
        if needed is not None or not isinstance(head, ClassifierHead) or not isinstance(head.transform, nn.Identity):
            return super().apply_heads(hidden_ND, batch, at=at, needed=needed, memory=memory)
        chosen_ND = hidden_ND if at is None else torch.from_numpy(hidden_ND.numpy()[at.numpy()])
        weight_CD, bias_C = head.output.weight.detach().numpy(), head.output.bias.detach().numpy()
        return Output(chosen_ND, torch.from_numpy(chosen_ND.numpy() @ weight_CD.T + bias_C), None, None, memory)

    @property
    def reads_first_tokens(self) -> bool:
        """Whether the head of whole sequences reads nothing but the first token of each."""
        return "pooled" in self.heads and self.heads["pooled"].pooling == "first"

    def has_hooks(self) -> bool:
        """Whether any forward hook is registered."""
        return any(module._forward_hooks or module._forward_pre_hooks for module in self.hookable)

    def run_session(self, batch: Ragged, *, first: bool = False) -> Tensor:
        """(N, D) hidden states of a batch, or (B, D) of the first tokens, from one call for each length."""
        check_length(batch.max_length, self.config.max_tokens)
        ids_N = batch.ids.numpy()
        segments_N = None if batch.segments is None else batch.segments.numpy()
        if len(batch) == 1 and batch.tokens == batch.max_length:
            return torch.from_numpy(
                self._run(ids_N[None], None if segments_N is None else segments_N[None], first=first)
            )
        hidden_ND = np.empty((len(batch) if first else batch.tokens, self.config.width), np.float32)
        starts_B = batch.bounds[:-1].numpy().astype(np.int64)
        for group in Layout.for_self_attention(batch.bounds, batch.max_length).groups:
            rows_per_call = max(RUN_TOKENS // group.queries, 1)
            for begin in range(0, len(group.rows), rows_per_call):
                rows = np.array(group.rows[begin : begin + rows_per_call])
                index_BT = starts_B[rows, None] + np.arange(group.queries)
                segments_BT = None if segments_N is None else segments_N[index_BT]
                places = rows if first else index_BT.ravel()
                hidden_ND[places] = self._run(ids_N[index_BT], segments_BT, first=first)
        return torch.from_numpy(hidden_ND)

    def _run(self, ids_BT: Integers, segments_BT: Integers | None, *, first: bool) -> npt.NDArray[np.float32]:
        """(B * T, D) hidden states of sequences of equal length, or (B, D) of their first tokens."""
        hidden_BTD = self.session.run([HIDDEN], self.feed(ids_BT, segments_BT, first=first))[0]
        flat_ND: npt.NDArray[np.float32] = hidden_BTD.reshape(-1, hidden_BTD.shape[-1])
        return flat_ND

    def feed(self, ids_BT: Integers, segments_BT: Integers | None, *, first: bool) -> dict[str, npt.NDArray[Any]]:
        """The inputs of the file for sequences of equal length. first: only their first token is needed."""
        feed = {"input_ids": ids_BT, "attention_mask": np.ones_like(ids_BT)}
        if SEGMENTS in self.inputs:
            feed[SEGMENTS] = np.zeros_like(ids_BT) if segments_BT is None else segments_BT
        return {name: value for name, value in feed.items() if name in self.inputs}
