"""Write what ONNX Runtime computes for each case. Run this by hand, where onnxruntime 1.32 is installed:

python -m tests.frontends.onnx.contributed.record
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from . import float_cases, integer_cases, quantized_cases
from .recorded import FILE


def main() -> None:
    recorded: dict[str, Any] = {}
    for case in (*float_cases.CASES, *integer_cases.CASES, *quantized_cases.CASES):
        results: list[list[Any]] = []
        for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            # With more threads, a quantised LSTM takes other scales.
            options.intra_op_num_threads = 1
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            try:
                session = onnxruntime.InferenceSession(
                    case.model().SerializeToString(), options, ["CPUExecutionProvider"]
                )
                results.append(session.run(None, dict(case.inputs)))
            except Exception as error:
                print(case.name, level, error)
        if not results:
            continue
        for name, *arrays in zip(filter(None, case.outputs), *results, strict=True):
            recorded[f"{case.name}/{name}"] = arrays[0]
            for other in arrays[1:]:
                if not np.allclose(arrays[0], other, rtol=1e-4, atol=1 if arrays[0].dtype.kind in "iu" else 1e-4):
                    print(case.name, name, "differs by the level of optimisation")
    np.savez_compressed(FILE, **recorded)


if __name__ == "__main__":
    main()
