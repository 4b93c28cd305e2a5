"""Write `tests/frontends/onnx/files/estimators.zip`: what skl2onnx makes of each estimator, and what comes of rows.

By hand, in an environment of its own, since scikit-learn is no dependency of the project. From the root of a checkout:

    python -m venv learned
    learned/bin/pip install scikit-learn==1.9.1 skl2onnx==1.20.0 onnxruntime==1.32.0
    learned/bin/python -m tests.frontends.onnx.estimators

A second run on the same machine writes the same bytes.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto
from skl2onnx import to_onnx

from tests.frontends.onnx.estimators.recipes import TRANSFORMERS, Array, fitted

PATH = Path(__file__).parents[1] / "files" / "estimators.zip"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every entry of the archive: bytes that are the same whenever they are made."""


def converted(name: str, estimator: Any, x: Array) -> ModelProto:
    """Scores as a table, not as a list of maps, where there is a choice."""
    options = {id(estimator): {"zipmap": False}}
    try:
        model = to_onnx(estimator, x[:1], options=options)
    except NameError:  # Some classifiers have no such option, nor such a list.
        model = to_onnx(estimator, x[:1])
    # The names of nodes and of the graph differ between runs.
    model.graph.name = name
    return model


def learned(name: str, estimator: Any, x: Array) -> list[tuple[str, Array]]:
    """What scikit-learn itself gives: labels or values, and scores."""
    if name in TRANSFORMERS and name != "KMeans":
        found = estimator.transform(x)
        return [("0", np.asarray(found.todense() if hasattr(found, "todense") else found))]
    results = [("0", estimator.predict(x))]
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return [*results, ("1", getattr(estimator, method)(x))]
    return [*results, ("1", estimator.transform(x))] if name == "KMeans" else results


def main() -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(PATH, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for name, (estimator, x) in sorted(fitted().items()):
            model = converted(name, estimator, x).SerializeToString(deterministic=True)
            _write(archive, f"{name}/model.onnx", model)
            _write(archive, f"{name}/x.npy", _bytes(x))
            for place, array in enumerate(onnxruntime.InferenceSession(model).run(None, {"X": x})):
                _write(archive, f"{name}/onnxruntime.{place}.npy", _bytes(np.asarray(array)))
            for place, array in learned(name, estimator, x):
                _write(archive, f"{name}/sklearn.{place}.npy", _bytes(array))


def _bytes(array: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


main()
