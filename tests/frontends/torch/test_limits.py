"""What would take memory or time while a program is imported is refused before it does; torch's own limits hold."""

from __future__ import annotations

from typing import NoReturn

import pytest

from tensorkiln.build import Builder
from tensorkiln.dtypes import DType
from tensorkiln.errors import InvalidGraphError, UnsupportedGraphError
from tensorkiln.frontends.torch import OPERATORS
from tensorkiln.frontends.torch.call import Call, Value
from tensorkiln.frontends.torch.exported import Operation, TensorType

MANY = 100_000


def run(target: str, dtype: str, shape: tuple[int, ...], result: tuple[int, ...], **arguments: Value) -> None:
    """Run one operator on an input `self`; torch's result has the shape `result`."""
    builder = Builder("limits")
    operation = Operation("node", target, {}, ("node",))
    given: dict[str, Value] = {"self": builder.input(dtype, shape), **arguments}

    def none(*_: object) -> NoReturn:
        raise AssertionError("a table is made of it")

    OPERATORS[target](
        Call(operation, builder, given, (TensorType(DType(dtype), result, dtype),), key=none, parameter=none)
    )


@pytest.mark.parametrize(
    ("target", "shape", "result", "arguments", "message"),
    [
        ("aten.tril_indices.default", (), (2, 0), {"row": MANY, "col": MANY}, "100000 by 100000 elements are more"),
        ("aten.triu_indices.default", (), (2, 0), {"row": MANY, "col": MANY}, "100000 by 100000 elements are more"),
        (
            *("aten._adaptive_avg_pool2d.default", (1, 4, 4), (1, MANY, MANY)),
            *({"output_size": (MANY, MANY)}, "4 elements are pooled to 100000, and at most 65536"),
        ),
        (
            *("aten.upsample_nearest1d.default", (1, 1, 4), (1, 1, 1 << 40)),
            *({"output_size": (1 << 40,)}, "axis 2 is resized to 1099511627776 elements, more than"),
        ),
        (
            *("aten.col2im.default", (1, 1 << 20, 1), (1, 1, 1024, 1024)),
            *(
                {
                    "output_size": (1024, 1024),
                    "kernel_size": (1024, 1024),
                    "dilation": (1, 1),
                    "padding": (0, 0),
                    "stride": (1, 1),
                },
                "a window of 1048576 elements is larger",
            ),
        ),
    ],
)
def test_sizes_without_measure_are_refused(
    target: str, shape: tuple[int, ...], result: tuple[int, ...], arguments: dict[str, Value], message: str
) -> None:
    with pytest.raises(UnsupportedGraphError, match=message):
        run(target, "float32", shape, result, **arguments)


@pytest.mark.parametrize(("dtype", "value"), [("float16", -1e9), ("uint8", 300), ("uint8", -1), ("int8", -129)])
def test_a_padding_that_its_type_does_not_hold_is_refused_as_torch_does(dtype: str, value: float) -> None:
    with pytest.raises(InvalidGraphError, match=rf"the value {value} overflows {dtype}"):
        run("aten.constant_pad_nd.default", dtype, (3,), (5,), pad=(1, 1), value=value)
