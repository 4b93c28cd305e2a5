"""An LSTM with weights of 8 bits, whose inputs and states are quantised at each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..recurrent import LSTM_ACTIVATIONS, directions_of, long_short_term
from ..value import Value


def quantized_lstm(node: Node) -> Sequence[Value]:
    """One scale for the inputs of all steps, and one at each step for the states of all sequences.

    ONNX Runtime with several threads gives the sequences of each thread a scale of their own.
    """
    if node.has(4):
        node.fail("the input sequence_lens is not supported: states after the end of a sequence would change its scale")
    weights = _centred(node, 1, 9), _centred(node, 2, 11)
    scales = node.tensor(8).cast(DType.FLOAT32), node.tensor(10).cast(DType.FLOAT32)
    return long_short_term(node, directions_of(node, 4, LSTM_ACTIVATIONS, 7, weights, scales))


def _centred(node: Node, place: int, zero_place: int) -> Tensor:
    """Weights without their zero points, (directions, gates * hidden, features), int32."""
    codes, zero = node.tensor(place).cast(DType.INT32), node.tensor(zero_place).cast(DType.INT32)
    if codes.rank != 3 or zero.rank not in (1, 2):
        node.invalid("weights are of rank 3, and their zero points one for a direction or one for each column")
    return build.transpose(codes - (zero.unsqueeze([1, 2]) if zero.rank == 1 else zero.unsqueeze([1])))


OPERATORS: dict[str, Callable[[Node], Sequence[Value]]] = {"DynamicQuantizeLSTM": quantized_lstm}
