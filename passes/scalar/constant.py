"""Literals of a dtype."""

from __future__ import annotations

import numpy as np

from dialect.mlir import ir
from tensorkiln.dtypes import DType

from .form import form_of
from .number import literal


def constant(dtype: DType, value: float) -> ir.Value:
    """A value of `dtype`: a float is rounded to nearest even, an integer taken modulo its width, bool is `!= 0`.

    For a narrow dtype, the code of one of its values.
    """
    if dtype.is_narrow:
        value = np.array(value).astype(dtype.numpy).view(np.uint8).item()
    return literal(form_of(dtype), bool(value) if dtype.is_bool else value).value
