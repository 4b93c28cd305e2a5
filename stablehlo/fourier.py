"""fft: transforms along the last axes."""

from __future__ import annotations

from typing import Any, Final

import numpy.typing as npt

from dialect.mlir import stablehlo
from tensorkiln.build import Tensor
from tensorkiln.dtypes import DType
from tensorkiln.frontends.composed import fourier

from .complex_numbers import as_pair, complex_operand
from .op import Op
from .table import Translator
from .value import Known, Value

_TYPES: Final = ("FFT", "IFFT", "RFFT", "IRFFT")


def _fft(op: Op) -> Value:
    kind = op.choice("fft_type", stablehlo.FftTypeAttr, _TYPES)
    lengths = op.integers("fft_length")
    wanted = op.result()

    def table(array: npt.NDArray[Any]) -> Tensor:
        return op.as_tensor(Known(array, DType.FLOAT64))

    # Computed in float64 and rounded once, after all axes.
    x = complex_operand(op, 0).cast(DType.FLOAT64)
    others = [-place for place in range(2, len(lengths) + 1)]
    if kind == "RFFT":
        x = fourier.half(x.real, table, op.fail)
    elif kind in ("FFT", "IFFT"):
        x = fourier.along(x, -1, kind == "IFFT", table, op.fail)
    for axis in others:
        x = fourier.along(x, axis, kind in ("IFFT", "IRFFT"), table, op.fail)
    if kind == "IRFFT":
        return fourier.from_half(x, lengths[-1], table, op.fail).cast(wanted.dtype)
    return as_pair(x.cast(wanted.dtype))


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.fft": _fft}
