"""An encoder that runs in int8 with ONNX Runtime, from its weights alone: no exported file is needed.

The graph (encoder_graph.py) is kept in the user's cache folder, so that the weights are converted once per machine.
The sums of embeddings are computed with numpy: threads of torch would wait for more work and take a core away from
those of ONNX Runtime.

Shapes: B sequences, T tokens of each, E embedding width.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard._version import __version__
from regard.data.atomic import atomic_path
from regard.device import cpu_features, has_fp16_vectors, needs_reduced_range
from regard.errors import RegardError
from regard.export.encoder_graph import INPUT, QUERIES, ROWS, encoder_graph, fits_encoder_graph
from regard.export.session import Integers, OnnxTransformer, open_session
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.user_cache import user_cache

VERSION = 3  # of the graphs in the cache
MAX_FILES = 16  # files in the cache; those that were not used for the longest time are removed
SUFFIX = ".onnx"
FEW_BYTES = 1 << 20  # a smaller graph is made faster than it is found
CHECK_TOKENS = 24
MIN_SIMILARITY = 0.95  # of hidden states to those in fp32; 8 bits give 0.99 or more
NEW_ATTENTION = (1, 24)  # version of ONNX Runtime that has the operation "Attention"


class Int8Encoder(OnnxTransformer):
    """An encoder whose blocks run in int8. Embeddings are looked up here, heads run in torch."""

    can_skip_tokens = True

    def __init__(self, network: Transformer, graph: Path | bytes, *, reduce_range: bool | None = None) -> None:
        """reduce_range: whether the weights of the graph have 7 bits; None: if this CPU needs it."""
        reduced = needs_reduced_range(reduce_range)
        super().__init__(network, open_session(graph, may_overflow=not reduced))
        self.graph_bytes = len(graph) if isinstance(graph, bytes) else graph.stat().st_size
        assert network.encoder is not None
        embeddings = network.encoder.embeddings
        self.scale = embeddings.scale
        self.tokens_VE = _array(embeddings.tokens.weight)
        self.positions_PE = None if embeddings.table is None else _array(embeddings.table)
        if embeddings.places is not None:
            self.positions_PE = _array(embeddings.places.weight)[embeddings.offset :]
        self.segments_SE = None if embeddings.segments is None else _array(embeddings.segments.weight)
        self.first_segment_PE = self.positions_PE  # what is added to the tokens of a text in one segment
        if self.segments_SE is not None:
            first_PE = self.segments_SE[:1]
            self.first_segment_PE = first_PE if self.positions_PE is None else self.positions_PE + first_PE

    @property
    def bytes(self) -> int:
        """The size of the weights that are used: those of the graph, the embedding tables and the heads."""
        assert self.encoder is not None
        modules = (self.encoder.embeddings, self.heads)
        tensors = {id(tensor): tensor.nbytes for module in modules for tensor in module.parameters()}
        return self.graph_bytes + sum(tensors.values())

    def feed(
        self, ids_BT: Integers, segments_BT: Integers | None, rows: Integers | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        x_BTE = np.take(self.tokens_VE, ids_BT, axis=0)
        if self.scale != 1.0:
            x_BTE *= self.scale
        table_PE = self.first_segment_PE
        if self.segments_SE is not None and segments_BT is not None and segments_BT.any():
            x_BTE += np.take(self.segments_SE, segments_BT, axis=0)
            table_PE = self.positions_PE
        if table_PE is not None:
            x_BTE += table_PE[: ids_BT.shape[1]]
        queries = length = ids_BT.shape[1]
        if rows is None:
            rows = np.arange(ids_BT.size)
        else:
            sequence, position = np.divmod(rows, length)
            queries = int(position.max()) + 1
            rows = sequence * queries + position
        return {INPUT: x_BTE, QUERIES: np.array([queries]), ROWS: rows}


def _array(tensor: Tensor) -> npt.NDArray[np.float32]:
    """The same memory where the tensor is in fp32."""
    array: npt.NDArray[np.float32] = tensor.detach().float().numpy()
    return array


def can_run_int8_encoder(network: Network) -> bool:
    """Whether the network fits and the packages of the extra onnx are installed."""
    return fits_encoder_graph(network) and all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))


def open_int8_encoder(
    network: Transformer, *, exclude: Collection[str] = (), reduce_range: bool | None = None
) -> Int8Encoder:
    """The network in int8; its graph comes from the cache, or is made and kept there.

    exclude: names of layers (see `int8_layers`) that stay in fp32. reduce_range: 7 bits for weights; None: if
    this CPU needs it.
    """
    reduce_range = needs_reduced_range(reduce_range)
    settings: dict[str, Any] = {
        "exclude": sorted(exclude),
        "reduce_range": reduce_range,
        "fp16": has_fp16_vectors(),
        "attention": _attention_operation(),
    }
    folder = user_cache("int8")
    path = None if folder is None else folder / f"{_digest(network, settings)}{SUFFIX}"
    if path is not None and path.is_file():
        with contextlib.suppress(RegardError, OSError):  # a damaged file is written again
            opened = Int8Encoder(network, path, reduce_range=reduce_range)
            os.utime(path)
            return opened
    content = encoder_graph(network, **settings).SerializeToString()
    opened = Int8Encoder(network, content, reduce_range=reduce_range)
    check_int8_encoder(network, opened)
    if path is not None and len(content) > FEW_BYTES:
        with contextlib.suppress(RegardError, OSError):  # a full disk, or another process that writes the same
            with atomic_path(path) as temporary:
                temporary.write_bytes(content)
            _remove_old(path.parent)
    return opened


@torch.inference_mode()
def check_int8_encoder(network: Transformer, opened: Int8Encoder) -> None:
    """Raise RegardError unless the hidden states of random tokens are nearly the same as in fp32."""
    generator = torch.Generator().manual_seed(1)
    length = min(CHECK_TOKENS, network.config.max_tokens or CHECK_TOKENS)
    ids = torch.randint(network.config.vocabulary, (length,), generator=generator)
    batch = Ragged.from_flat(ids, [length])
    expected_ND, actual_ND = network.read(batch).float(), opened.read(batch)
    similarity = torch.cosine_similarity(expected_ND.flatten(), actual_ND.flatten(), dim=0).item()
    if not similarity >= MIN_SIMILARITY:
        raise RegardError(
            f"int8 is wrong on this machine: hidden states have a similarity of {similarity:.2f} to fp32."
        )


def _attention_operation() -> str:
    import onnxruntime

    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    return "Attention" if version >= NEW_ATTENTION else "MultiHeadAttention"


def _digest(network: Transformer, settings: dict[str, Any]) -> str:
    """A digest of the weights of the blocks, the CPU, the settings and the version."""
    assert network.encoder is not None
    digest = hashlib.sha256(f"{VERSION} {__version__} {cpu_features()} {network.config} {settings}".encode())
    for name, tensor in network.encoder.state_dict().items():
        if not name.startswith("embeddings.tokens."):  # the graph does not hold the table
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(_array(tensor)).data)
    return digest.hexdigest()[:40]


def _remove_old(folder: Path) -> None:
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[MAX_FILES:]:
        path.unlink(missing_ok=True)
