"""An ONNX graph under construction: nodes, and weights that are stored once however often used.

A weight has its module's name, so a layer that is run twelve times is one initializer with twelve
readers. Matrices lie as products read them (inputs x outputs): there is no Transpose of a weight,
behind which quantizers lose sight of it. With `quantized`, a linear layer is

    DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul by both scales -> Add the bias

which onnxruntime runs as one operator. Weights are int8, symmetric, a scale a column, and use 7 of
8 bits: x86 without VNNI adds two products in 16 bits, which 8-bit weights overflow.

Operators are those of opset 17, so that runtimes of 2022 and later, also in browsers, have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from litebert.base.errors import MissingExtraError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # what opset 17 was published with
LARGEST_WEIGHT = 64  # of an int8 one: see above

Shape = list[int | str]


def import_onnx() -> Any:
    """The package, or which extra brings it."""
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "exporting to ONNX") from None
    return onnx


class GraphBuilder:
    """Collects nodes and weights; every method that adds nodes returns the name of a value."""

    def __init__(self, *, quantized: bool = False) -> None:
        self._onnx = import_onnx()
        self.quantized = quantized
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, TensorProto] = {}
        self._integers: dict[str, tuple[str, str, str]] = {}  # value -> quantized, scale, zero

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node of one output, by the name of its output."""
        return self.add_several(operator, *inputs, outputs=1, **attributes)[0]

    def add_several(
        self, operator: str, *inputs: str, outputs: int, **attributes: Any
    ) -> list[str]:
        """A node, by the names of its outputs."""
        name = f"{operator}_{len(self.nodes)}"
        names = [name if outputs == 1 else f"{name}_{i}" for i in range(outputs)]
        make_node = self._onnx.helper.make_node
        self.nodes.append(make_node(operator, list(inputs), names, name=name, **attributes))
        return names

    def weight(self, name: str, values: Tensor | NDArray[Any]) -> str:
        """An initializer; one of a name that is there already is the same one."""
        if name not in self.weights:
            array = values.detach().numpy() if isinstance(values, Tensor) else values
            self.weights[name] = self._onnx.numpy_helper.from_array(
                np.asarray(array, order="C"), name
            )
        return name

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """A small constant, named by its value."""
        array = np.array(values, dtype)
        return self.weight(f"{array.dtype}_{array.tolist()}".replace(" ", ""), array)

    def integers(self, *values: int) -> str:
        """A vector of int64: shapes, axes, indices."""
        return self.constant(values, np.int64)

    # ------------------------------------------------------------------------------ layers

    def linear(self, x: str, name: str, layer: nn.Linear, scale: NDArray[Any] | None = None) -> str:
        """x W + b of flat tokens (N, inputs); `scale` multiplies outputs, once and for all."""
        matrix = layer.weight.detach().numpy().T
        bias = None if layer.bias is None else layer.bias.detach().numpy()
        if scale is not None:
            matrix, bias = matrix * scale, None if bias is None else bias * scale
        product = self.product(x, f"{name}.weight", matrix)
        return product if bias is None else self.plus(product, f"{name}.bias", bias)

    def product(self, x: str, name: str, matrix: NDArray[Any]) -> str:
        """Values times a weight (inputs x outputs)."""
        if not self.quantized:
            return self.add("MatMul", x, self.weight(name, matrix))
        integers, scales = self._column_integers(name, matrix)
        quantized, scale, zero = self._quantized(x)
        total = self.add("MatMulInteger", quantized, integers, zero)
        return self.add("Mul", self.float(total), self.add("Mul", scale, scales))

    def plus(self, x: str, name: str, bias: Tensor | NDArray[Any]) -> str:
        """Values plus a weight."""
        return self.add("Add", x, self.weight(name, bias))

    def norm(self, x: str, name: str, layer: nn.LayerNorm) -> str:
        """Layer normalization over the last axis."""
        weight = self.weight(f"{name}.weight", layer.weight)
        bias = self.weight(f"{name}.bias", layer.bias)
        return self.add("LayerNormalization", x, weight, bias, axis=-1, epsilon=layer.eps)

    def rows(self, name: str, table: nn.Embedding, ids: str) -> str:
        """Rows of a table."""
        if not self.quantized:
            return self.add("Gather", self.weight(f"{name}.weight", table.weight), ids)
        integers, scales = quantize_columns(table.weight.detach().numpy().T)
        found = self.add("Gather", self.weight(f"{name}.weight_int8", integers.T), ids)
        scale = self.add("Gather", self.weight(f"{name}.weight_scale", scales[:, None]), ids)
        return self.add("Mul", self.float(found), scale)

    def columns(self, name: str, table: nn.Embedding, ids: str) -> str:
        """The same rows, of a table that lies as a tied decoder reads it: (width, vocabulary)."""
        matrix = table.weight.detach().numpy().T
        if not self.quantized:
            found = self.add("Gather", self.weight(f"{name}.weight", matrix), ids, axis=1)
            return self.add("Transpose", found, perm=[1, 2, 0])
        integers, scales = self._column_integers(f"{name}.weight", matrix)
        found = self.add("Gather", integers, ids, axis=1)
        scaled = self.add("Mul", self.float(found), self.add("Gather", scales, ids))
        return self.add("Transpose", scaled, perm=[1, 2, 0])

    def activation(self, x: str, name: str) -> str:
        """`gelu` (erf), `gelu_new` (tanh) or `relu`, in the form that onnxruntime fuses."""
        if name == "relu":
            return self.add("Relu", x)
        if name == "gelu":
            error = self.add("Erf", self.add("Div", x, self.constant(2**0.5)))
            whole = self.add("Mul", x, self.add("Add", error, self.constant(1)))
            return self.add("Mul", whole, self.constant(0.5))
        cube = self.add("Mul", self.add("Pow", x, self.constant(3)), self.constant(0.044715))
        inner = self.add("Mul", self.add("Add", x, cube), self.constant((2 / np.pi) ** 0.5))
        factor = self.add("Add", self.add("Tanh", inner), self.constant(1))
        return self.add("Mul", self.add("Mul", x, self.constant(0.5)), factor)

    # ------------------------------------------------------------------------------ shapes

    def reshape(self, x: str, *shape: int) -> str:
        """Into a shape whose -1, if any, follows from the others."""
        return self.add("Reshape", x, self.integers(*shape))

    def float(self, x: str) -> str:
        """As float32."""
        return self.add("Cast", x, to=self._onnx.TensorProto.FLOAT)

    def integer(self, x: str) -> str:
        """As int64."""
        return self.add("Cast", x, to=self._onnx.TensorProto.INT64)

    def boolean(self, x: str) -> str:
        """True where it is not 0."""
        return self.add("Cast", x, to=self._onnx.TensorProto.BOOL)

    def take(self, x: str, index: int, axis: int) -> str:
        """One place of an axis, which goes."""
        return self.add("Gather", x, self.constant(index, np.int64), axis=axis)

    # -------------------------------------------------------------------------------- whole

    def model(self, inputs: dict[str, Shape], outputs: dict[str, tuple[str, Shape]]) -> ModelProto:
        """The whole: int64 inputs, float outputs by name, each with the value that it is.

        Weights move into it one by one, so that none is in memory twice; the builder is empty then.
        """
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        for name, (value, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        graph = helper.make_graph(
            self.nodes, "litebert",
            [helper.make_tensor_value_info(n, kinds.INT64, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, kinds.FLOAT, s) for n, (_, s) in outputs.items()],
        )  # fmt: skip
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, producer_name="litebert")
        model.ir_version = IR_VERSION
        for name in list(self.weights):
            model.graph.initializer.append(self.weights.pop(name))
        return model

    def _quantized(self, x: str) -> tuple[str, str, str]:
        if x not in self._integers:
            found = self.add_several("DynamicQuantizeLinear", x, outputs=3)
            self._integers[x] = (found[0], found[1], found[2])
        return self._integers[x]

    def _column_integers(self, name: str, matrix: NDArray[Any]) -> tuple[str, str]:
        integers, scales = f"{name}_int8", f"{name}_scale"
        if integers not in self.weights:
            values, steps = quantize_columns(matrix)
            self.weight(integers, values)
            self.weight(scales, steps)
        return integers, scales


def quantize_columns(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric integers of 7 bits, and the scale of each column."""
    largest = np.abs(matrix).max(0)
    scales = (np.where(largest > 0, largest, 1) / LARGEST_WEIGHT).astype(np.float32)
    integers = np.rint(matrix / scales).clip(-LARGEST_WEIGHT, LARGEST_WEIGHT)
    return integers.astype(np.int8), scales
