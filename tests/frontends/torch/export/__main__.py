"""Write `tests/frontends/torch/files`: one archive a family, with what torch exports of each case and computes.

`python -m tests.frontends.torch.export`, with torch 2.13 for the CPU on the path.
"""

from __future__ import annotations

import copy
import io
import json
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from tensorkiln.frontends.torch import decompositions

from . import (
    arithmetic,
    arrangement,
    corners,
    experts,
    factors,
    gradients,
    models,
    networks,
    quantized,
    recurrent,
    spectra,
    statistics,
    uncommon,
)
from .case import Case

FILES = Path(__file__).parents[1] / "files"
ROOT = Path(__file__).parents[4]
FAMILIES = {
    "arithmetic": arithmetic.CASES,
    "arrangement": arrangement.CASES,
    "corners": corners.CASES,
    "experts": experts.CASES,
    "factors": factors.CASES,
    "gradients": gradients.CASES,
    "models": models.CASES,
    "networks": networks.CASES,
    "quantized": quantized.CASES,
    "recurrent": recurrent.CASES,
    "spectra": spectra.CASES,
    "statistics": statistics.CASES,
    "uncommon": uncommon.CASES,
}
STAMP = (2026, 1, 1, 0, 0, 0)


def main() -> None:
    FILES.mkdir(exist_ok=True)
    chosen = sys.argv[1:] or list(FAMILIES)
    for family in chosen:
        with zipfile.ZipFile(FILES / f"{family}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, case in FAMILIES[family].items():
                for suffix, content in written(name, case):
                    archive.writestr(zipfile.ZipInfo(f"{name}{suffix}", STAMP), content, zipfile.ZIP_DEFLATED, 9)


def written(name: str, case: Case) -> Iterator[tuple[str, bytes]]:
    """The exported program, and the arrays of all calls: `0.in.1` is the second leaf of the first call's arguments."""
    torch.manual_seed(sum(map(ord, name)))
    module = copy.deepcopy(case.module).train(case.training)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape) * 0.5
    shapes = dynamic_shapes(case)
    try:
        exported = torch.export.export(module, case.calls[0], dynamic_shapes=shapes, strict=False)
        exported = exported.run_decompositions(decompositions())
        stream = io.BytesIO()
        torch.export.save(exported, stream)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        return
    yield ".pt2", plain(stream.getvalue())
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for number, call in enumerate(case.calls):
        for place, leaf in enumerate(pytree.tree_leaves(call)):
            arrays[f"{number}.in.{place}"] = _array(leaf)
        with torch.no_grad():
            found = module(*copy.deepcopy(call))
        for place, leaf in enumerate(pytree.tree_leaves(found)):
            arrays[f"{number}.out.{place}"] = _array(leaf)
        for buffer, value in module.named_buffers():
            arrays[f"{number}.buffer.{buffer}"] = _array(value)
    npz = io.BytesIO()
    np.savez(npz, allow_pickle=False, **arrays)
    yield ".npz", npz.getvalue()


def dynamic_shapes(case: Case) -> Any:
    """What `torch.export` takes for the axes that vary."""
    if not case.dynamic:
        return None
    found = tuple(
        {axis: _dim(f"d{place}_{axis}", *bounds) for axis, bounds in axes.items()} or None
        for place, axes in enumerate(case.dynamic)
    )
    return (found,) if type(case.module).__name__ == "Function" else found


def _dim(name: str, *bounds: Any) -> Any:
    own, low, high = bounds if len(bounds) == 3 else (name, *bounds)
    return torch.export.Dim(own, min=low, max=high)


def _array(leaf: Any) -> np.ndarray[Any, Any]:
    """As NumPy holds it; bfloat16 as float32, which is exact, and None as an empty array of bytes."""
    if isinstance(leaf, Tensor):
        return leaf.detach().float().numpy() if leaf.dtype is torch.bfloat16 else leaf.detach().numpy().copy()
    return np.zeros(0, np.uint8) if leaf is None else np.asarray(leaf)


def plain(archive: bytes) -> bytes:
    """The archive without what says where it was made, and without what only torch reads."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as kept:
        for name in given.namelist():
            content = given.read(name)
            if "/sample_inputs/" in name or "serialization_id" in name:
                continue
            if name.endswith("/models/model.json"):
                content = json.dumps(_anonymous(json.loads(content)), separators=(",", ":")).encode()
            root, _, path = name.partition("/")
            del root
            kept.writestr(zipfile.ZipInfo(f"case/{path}", STAMP), content)
    return stream.getvalue()


def _anonymous(record: dict[str, Any]) -> dict[str, Any]:
    for node in record["graph_module"]["graph"]["nodes"]:
        trace = node["metadata"].get("stack_trace", "")
        trace = re.sub(r'File "[^"]*?/(torch/[^"]*|tests/frontends/[^"]*)"', r'File "\1"', trace.replace(str(ROOT), ""))
        node["metadata"] = {"stack_trace": re.sub(r'File "/', 'File "', trace)}
    return record


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
