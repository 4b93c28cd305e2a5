"""The measured peers and their environments; each runs in a separate process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGE: Final = "tests.bench.peers"
REQUIREMENTS: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Peer:
    """A candidate: `module` has its function `engine`, which gets `variant`.

    `environment` names the requirements file of its virtual environment; without one, the peer runs in the current
    environment. A peer that `has_weights` gets the weights of a row at compile time, and is measured only on rows that
    have some.
    """

    name: str
    title: str
    module: str
    environment: str = ""
    variant: str = ""
    has_weights: bool = False
    is_ours: bool = False


PEERS: Final = (
    Peer("tensorkiln", "tensorkiln", f"{PACKAGE}.on_tensorkiln", is_ours=True),
    Peer(
        *("tensorkiln-bound", "tensorkiln, weights bound", f"{PACKAGE}.on_tensorkiln", "", "bound"),
        has_weights=True,
        is_ours=True,
    ),
    Peer("numpy", "NumPy", f"{PACKAGE}.on_numpy", "numpy"),
    Peer("jax", "JAX", f"{PACKAGE}.on_jax", "jax"),
    Peer("torch", "torch", f"{PACKAGE}.on_torch", "torch"),
    Peer("torch-compile", "torch.compile", f"{PACKAGE}.on_torch", "torch", "compiled"),
    Peer("iree", "IREE", f"{PACKAGE}.on_iree", "iree"),
    Peer("iree-tiled", "IREE, data tiling", f"{PACKAGE}.on_iree", "iree", "tiled"),
    Peer("onnxruntime", "ONNX Runtime", f"{PACKAGE}.on_onnxruntime", "onnxruntime"),
    Peer(
        *("onnxruntime-constant", "ONNX Runtime, constant weights", f"{PACKAGE}.on_onnxruntime"),
        *("onnxruntime", "constant"),
        has_weights=True,
    ),
    Peer("numba", "numba", f"{PACKAGE}.on_numba", "numba"),
)

BY_NAME: Final = {peer.name: peer for peer in PEERS}
