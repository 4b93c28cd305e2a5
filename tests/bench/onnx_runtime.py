"""ONNX Runtime as an optional candidate of the benchmark."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

Array = np.ndarray[Any, Any]


def onnx_runtime(model: ModelProto) -> Callable[[Mapping[str, Array]], list[Array]] | None:
    """The model as a function of its inputs, on one thread; None if the package is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, dict(feeds))
