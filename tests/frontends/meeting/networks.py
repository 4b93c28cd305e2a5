"""Three small networks: the shapes of what they take and of their parameters, which are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FILES = Path(__file__).parent / "files"
WIDTH, HEADS = 16, 2
SHAPES = {"mlp": (6, 8), "convnet": (2, 3, 8, 8), "block": (2, 5, WIDTH)}
_PARAMETERS = {
    "mlp": {"w1": (16, 8), "b1": (16,), "w2": (4, 16), "b2": (4,)},
    "convnet": {"kernel": (4, 3, 3, 3), "shift": (4,), "w": (5, 64), "b": (5,)},
    "block": {
        "scale1": (WIDTH,),
        "shift1": (WIDTH,),
        **{f"w{name}": (WIDTH, WIDTH) for name in "qkvo"},
        "scale2": (WIDTH,),
        "shift2": (WIDTH,),
        "w1": (WIDTH, 32),
        "b1": (32,),
        "w2": (32, WIDTH),
        "b2": (WIDTH,),
    },
}


def drawn(name: str) -> tuple[Any, dict[str, Any]]:
    """The input of a network and its parameters by name, float32."""
    generator = np.random.default_rng(sorted(SHAPES).index(name))
    shapes = {"x": SHAPES[name], **_PARAMETERS[name]}
    arrays = {each: (generator.standard_normal(shape) * 0.3).astype(np.float32) for each, shape in shapes.items()}
    return arrays.pop("x"), arrays
