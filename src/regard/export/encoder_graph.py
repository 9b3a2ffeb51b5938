"""The blocks of an encoder as an ONNX graph with int8 products: what the engine "onnx int8" runs.

It is made from the weights in a second, without tracing. In plain terms, it differs from a traced file as follows:

1. Texts run without padding, so there is no mask.
2. The graph only subtracts the mean and divides by the standard deviation; the weight and the bias of a norm are moved
   into the layers that read it. As the norm of an image with one channel per token (`InstanceNormalization`), ONNX
   Runtime computes it in vectors.
3. Activations are rounded to 8 bits once for queries, keys and values, with a scale per text. The scales of
   smoothing.py are part of the weights of the layer before where that is linear.
4. One or two units of a feed-forward part have numbers 10 times as large as all others. They are computed in fp32, so
   that they do not cost the others precision.
5. GELU is the formula with tanh, in fp16 where the CPU has instructions for it.
6. The last block computes only the tokens that are asked for: the first for a classifier, the first token of each word
   for tags, the context for an answer. Its attention computes the first Q tokens of each text, where Q - 1 is the last
   position that is asked for; what follows the attention computes R rows of all these tokens.

Attention, norms and sums are in fp32. Shapes: B sequences of T tokens, D width, I numbers in, O numbers out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from regard.device import needs_reduced_range
from regard.export.fast_operations import MICROSOFT
from regard.export.int8_linear import int8_layers
from regard.export.smoothing import largest_inputs, smoothing_scale
from regard.model.block import Block
from regard.model.network import Network
from regard.model.transformer import Transformer

if TYPE_CHECKING:
    import onnx

INPUT, OUTPUT = "embeddings", "last_hidden_state"
QUERIES = "queries"  # the input with Q
ROWS = "rows"  # the input with R numbers of rows, of B * Q
OPSETS = {"Attention": 23, "MultiHeadAttention": 20}  # by the operation that computes attention
OPERATIONS = ("DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MultiHeadAttention", "FastGelu")  # of ONNX Runtime
LEVELS, REDUCED_LEVELS = 127, 63  # largest integer of a weight; without VNNI
MAX_LARGE_UNITS = 8  # units of a feed-forward part in fp32 at most
LARGE = 2.5  # times as large as the largest of the other units
TINY = 1e-12
FP32, INT64, FP16 = 1, 7, 10  # types of ONNX

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Affine:
    """The value `tensor * weight + bias`, of which the graph computes only the tensor."""

    tensor: str
    weight_D: Floats
    bias_D: Floats


def fits_encoder_graph(network: Network) -> bool:
    """Whether the network is an encoder that the graph can compute: blocks as in BERT, RoBERTa, DistilBERT, ALBERT."""
    if not isinstance(network, Transformer) or network.encoder is None or network.decoder is not None:
        return False
    config = network.config
    attention = config.attention
    return (
        config.norm == "layer"
        and config.activation in ("gelu", "gelu-tanh", "relu")
        and config.positions.kind in ("none", "learned", "sinusoidal", "sinusoidal-halves")
        and (attention.score, attention.select, attention.window) == ("scaled", "soft", None)
        and config.kv_heads == attention.heads
    )


def encoder_graph(
    network: Transformer,
    *,
    exclude: Collection[str] = (),
    reduce_range: bool | None = None,
    fp16: bool = False,
    attention: str = "Attention",
) -> onnx.ModelProto:
    """The graph of a network that fits: sums of embeddings (B, T, E) in, hidden states (1, R, D) of the `ROWS` out.

    exclude: names of layers (see `int8_layers`) that stay in fp32. reduce_range: whether weights have 7 bits in
    place of 8; None: if this CPU needs it. fp16: whether the CPU computes GELU faster in fp16.
    attention: the operation that computes it; versions of ONNX Runtime before 1.24 only have "MultiHeadAttention".
    """
    reduced = needs_reduced_range(reduce_range)
    return _Builder(network, exclude, REDUCED_LEVELS if reduced else LEVELS, fp16, attention).model()


class _Builder:
    """Nodes and constants of the graph."""

    def __init__(self, network: Transformer, exclude: Collection[str], levels: int, fp16: bool, attention: str) -> None:
        self.network = network
        self.exclude = exclude
        self.levels = levels
        self.fp16 = fp16
        self.attention_operation = attention
        self.layers = int8_layers(network)
        self.largest = largest_inputs(network, self.layers)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self.names: dict[tuple[str, bytes], str] = {}  # of constants, by their content: layers may share weights
        self.in_last_block = False

    def model(self) -> onnx.ModelProto:
        from onnx import helper, numpy_helper

        assert self.network.encoder is not None
        stack = self.network.encoder
        width = self.network.config.width
        value = self.embeddings()
        for i in range(stack.depth):
            index = stack.layer_index(i)
            self.in_last_block = i == stack.depth - 1
            value = self.block(cast("Block", stack.layers[index]), f"encoder.layers.{index}", value)
        if isinstance(stack.norm, nn.LayerNorm):
            value = self.norm(self.exact(value), stack.norm)
        last = self.add("Mul", value.tensor, self.constant(value.weight_D))
        self.nodes.append(helper.make_node("Add", [last, self.constant(value.bias_D)], [OUTPUT], OUTPUT))
        sides = ["batch_size", "sequence_length"]
        embedding_width = self.network.config.embedding_width or width
        graph = helper.make_graph(
            self.nodes,
            "encoder",
            [
                helper.make_tensor_value_info(INPUT, FP32, [*sides, embedding_width]),
                helper.make_tensor_value_info(QUERIES, INT64, [1]),
                helper.make_tensor_value_info(ROWS, INT64, ["number_of_rows"]),
            ],
            [helper.make_tensor_value_info(OUTPUT, FP32, [1, "number_of_rows", width])],
            [numpy_helper.from_array(constant, name) for name, constant in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", OPSETS[self.attention_operation]), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def add(self, operation: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; returns the name of its output, or the names of all."""
        from onnx import helper

        name = f"{operation}_{len(self.nodes)}"
        names = [f"{name}.{number}" for number in range(outputs)]
        domain = MICROSOFT if operation in OPERATIONS else ""
        self.nodes.append(helper.make_node(operation, inputs, names, name, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: npt.NDArray[Any]) -> str:
        value = np.ascontiguousarray(value)
        key = (f"{value.dtype}{value.shape}", value.tobytes())
        if key not in self.names:
            self.names[key] = f"constant_{len(self.names)}"
            self.constants[self.names[key]] = value
        return self.names[key]

    def embeddings(self) -> Affine:
        """The norm and the projection of the sums of embeddings."""
        assert self.network.encoder is not None
        embeddings = self.network.encoder.embeddings
        self.set_length(self.add("Shape", INPUT, start=1, end=2))
        value = _plain(INPUT, self.network.config.embedding_width or self.network.config.width)
        if isinstance(embeddings.norm, nn.LayerNorm):
            value = self.norm(INPUT, embeddings.norm)
        if isinstance(embeddings.projection, nn.Linear):
            return self.plain(self.fp32_product(value, *_weights(embeddings.projection)))
        return value

    def set_length(self, length: str) -> None:
        """The number of tokens of the norms that follow."""
        self.ones = self.add("ConstantOfShape", length, value=_scalar(1.0))
        self.zeros = self.add("ConstantOfShape", length, value=_scalar(0.0))

    def queries(self, tensor: str) -> str:
        """The tokens of (B, T, D) whose attention is computed: all, or the first Q in the last block."""
        if not self.in_last_block:
            return tensor
        start, axis = (self.constant(np.array([number])) for number in (0, 1))
        return cast("str", self.add("Slice", tensor, start, QUERIES, axis))

    def rows(self, tensor: str, width: int) -> str:
        """What is computed after the attention: all of (B, T, D), or (1, R, D) rows of (B, Q, D) in the last block."""
        if not self.in_last_block:
            return tensor
        flat = self.add("Reshape", tensor, self.constant(np.array([1, -1, width])))
        return cast("str", self.add("Gather", flat, ROWS, axis=1))

    def block(self, block: Block, name: str, x: Affine) -> Affine:
        """A block, with its norms before or after its parts."""
        norms = (block.attention_norm, block.feedforward_norm)
        for part, norm in zip((self.attention, self.feed_forward), norms, strict=True):
            if block.norm_first:
                source = self.norm(self.exact(x), norm) if isinstance(norm, nn.LayerNorm) else x
                x = self.plain(part(block, name, source, x))
            else:
                x = self.norm(part(block, name, x, x), norm)
        return x

    def attention(self, block: Block, name: str, x: Affine, residual: Affine) -> str:
        """The output of the attention plus the residual."""
        layer = block.attention
        out = f"{name}.attention.out"
        weight_OI, bias_O = _weights(layer.qkv)
        scale_I = self.scale(out)
        values = slice(len(weight_OI) - len(scale_I), None)
        weight_OI[values] /= scale_I[:, None]
        bias_O[values] /= scale_I
        heads = layer.head_counts[0]
        queries_keys_values = self.products(x, f"{name}.attention.qkv", weight_OI, bias_O, parts=3)
        counts = {"q_num_heads": heads, "kv_num_heads": heads}
        if self.attention_operation != "Attention":
            counts = {"num_heads": heads}
        mixed = self.rows(self.add(self.attention_operation, *queries_keys_values, **counts), len(scale_I))
        weight_OI, bias_O = _weights(layer.out)
        mixed_value = Affine(mixed, scale_I, np.zeros_like(scale_I))
        product = self.products(mixed_value, out, weight_OI, bias_O + residual.bias_D)[0]
        if self.in_last_block:
            self.set_length(self.add("Shape", ROWS))
        tensor = self.rows(self.queries(residual.tensor), len(residual.weight_D))
        return cast("str", self.add("Add", product, self.scaled(tensor, residual.weight_D)))

    def feed_forward(self, block: Block, name: str, x: Affine, residual: Affine) -> str:
        """The output of the feed-forward part plus the residual."""
        up, down = f"{name}.feedforward.up", f"{name}.feedforward.down"
        up_OI, up_O = _weights(block.feedforward.up)
        down_OI, down_O = _weights(block.feedforward.down)
        sums = [self.scaled(residual.tensor, residual.weight_D)]
        large = self.large_units(down)
        if len(large):
            wide = self.activation(self.fp32_product(x, up_OI[large], up_O[large]))
            sums.append(self.add("MatMul", wide, self.constant(down_OI[:, large].T)))
            up_OI[large], up_O[large], down_OI[:, large] = 0, 0, 0
        wide = self.activation(self.products(x, up, up_OI, up_O)[0])
        value = self.plain(wide, down_OI.shape[1])
        sums.append(self.products(value, down, down_OI, down_O + residual.bias_D)[0])
        return cast("str", self.add("Sum", *sums))

    def large_units(self, down: str) -> npt.NDArray[np.int64]:
        """The few units whose numbers are far larger than those of all others, on random tokens."""
        if down not in self.largest or down in self.exclude:
            return np.zeros(0, np.int64)
        size_I = self.largest[down].float().numpy() / self.scale(down)
        order_I = np.argsort(-size_I)
        if len(order_I) <= MAX_LARGE_UNITS:
            return order_I[:0]
        others = max(float(size_I[order_I[MAX_LARGE_UNITS]]), TINY)
        return np.asarray(order_I[:MAX_LARGE_UNITS][size_I[order_I[:MAX_LARGE_UNITS]] > LARGE * others])

    def activation(self, x: str) -> str:
        if self.network.config.activation == "relu":
            return cast("str", self.add("Relu", x))
        if not self.fp16:
            return cast("str", self.add("FastGelu", x))
        return cast(
            "str", self.add("Cast", self.add("Gelu", self.add("Cast", x, to=FP16), approximate="tanh"), to=FP32)
        )

    def products(self, x: Affine, layer: str, weight_OI: Floats, bias_O: Floats, *, parts: int = 1) -> list[str]:
        """The outputs of a linear layer, in equal parts; the first of several is for the queries only."""
        if layer in self.exclude or layer not in self.largest:
            whole = self.fp32_product(x, weight_OI, bias_O)
            if parts == 1:
                return [whole]
            first, *others = self.add("Split", whole, outputs=parts, axis=2, num_outputs=parts)
            return [self.queries(first), *others]
        scale_I = np.ones_like(x.weight_D) if layer.endswith(".down") else self.scale(layer)
        bias_O = bias_O + weight_OI @ x.bias_D
        source = self.scaled(x.tensor, x.weight_D / scale_I)
        integers_OI, row_scale_O = self.rounded(weight_OI * scale_I)
        if parts == 1:
            constants = [self.constant(value) for value in (integers_OI.T, row_scale_O, bias_O)]
            return [self.add("DynamicQuantizeMatMul", source, *constants[:2], "", constants[2])]
        quantized, scale, zero = self.add("DynamicQuantizeLinear", source, outputs=3)
        results = []
        sources = [self.queries(quantized), *[quantized] * (parts - 1)]
        for part, rows in zip(sources, np.split(np.arange(len(bias_O)), parts), strict=True):
            constants = [self.constant(value[rows].T) for value in (integers_OI, row_scale_O, bias_O)]
            inputs = (part, constants[0], scale, constants[1], zero, "", constants[2])
            results.append(self.add("MatMulIntegerToFloat", *inputs))
        return results

    def fp32_product(self, x: Affine, weight_OI: Floats, bias_O: Floats) -> str:
        product = self.add("MatMul", x.tensor, self.constant((weight_OI * x.weight_D).T))
        return cast("str", self.add("Add", product, self.constant(bias_O + weight_OI @ x.bias_D)))

    def rounded(self, weight_OI: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
        """Integers, and the scale of each row."""
        scale_O = np.maximum(np.abs(weight_OI).max(1), TINY) / self.levels
        return np.rint(weight_OI / scale_O[:, None]).astype(np.int8), scale_O.astype(np.float32)

    def scale(self, layer: str) -> Floats:
        """(I,) see smoothing.py; ones for layers in fp32."""
        if layer in self.exclude or layer not in self.largest:
            return np.ones(self.layers[layer].in_features, np.float32)
        return smoothing_scale(self.largest[layer], self.layers[layer]).numpy()

    def norm(self, x: str, norm: nn.Module) -> Affine:
        assert isinstance(norm, nn.LayerNorm)
        tensor = self.add("InstanceNormalization", x, self.ones, self.zeros, epsilon=norm.eps)
        weight_D = _array(norm.weight)
        return Affine(tensor, weight_D, np.zeros_like(weight_D) if norm.bias is None else _array(norm.bias))

    def scaled(self, tensor: str, weight_D: Floats) -> str:
        return tensor if np.all(weight_D == 1) else cast("str", self.add("Mul", tensor, self.constant(weight_D)))

    def exact(self, x: Affine) -> str:
        """The value itself."""
        tensor = self.scaled(x.tensor, x.weight_D)
        return cast("str", self.add("Add", tensor, self.constant(x.bias_D))) if np.any(x.bias_D) else tensor

    def plain(self, tensor: str, width: int | None = None) -> Affine:
        return _plain(tensor, width or self.network.config.width)


def _plain(tensor: str, width: int) -> Affine:
    return Affine(tensor, np.ones(width, np.float32), np.zeros(width, np.float32))


def _array(tensor: Tensor) -> Floats:
    return tensor.detach().float().numpy().copy()


def _weights(layer: nn.Linear) -> tuple[Floats, Floats]:
    """Copies of weight and bias, the latter zeros where there is none."""
    bias_O = np.zeros(layer.out_features, np.float32) if layer.bias is None else _array(layer.bias)
    return _array(layer.weight), bias_O


def _scalar(value: float) -> onnx.TensorProto:
    from onnx import helper

    return helper.make_tensor("value", FP32, [1], [value])
