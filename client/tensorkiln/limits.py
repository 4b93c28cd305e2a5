"""The published limits of a graph.

Exceeding one raises `limit.exceeded` with its name, the maximum and the actual value.
"""

from __future__ import annotations

MAX_NODES = 50_000
MAX_RANK = 16
MAX_SYMBOLS = 32
MAX_EXPRESSION_DEPTH = 64
"""Levels of a dimension expression; a leaf (an integer or a symbol) is one level."""

MAX_EXPRESSION_TERMS = 256
"""Terms of a dimension expression after expansion, before equal terms are merged."""

MAX_KERNEL_DEPTH = 32
"""Levels of `kernel` nodes nested through their `ast`."""

MAX_LOOP_DEPTH = 4
"""Levels of nested `while` nodes."""

MOST_TURNS = (1 << 31) - 1
"""Turns of a loop."""

MAX_JSON_DEPTH = 201
"""Levels of brackets in the text of a graph: the limit of pydantic's parser, above what all other limits allow."""

MAX_ELEMENTS = 1 << 48
"""Elements of one value."""

MAX_BUFFER_BYTES = 1 << 40
"""Bytes of one value that has to exist in memory: an input, an output or a buffer."""

MAX_BODY_BYTES = 64 << 20
"""Bytes of the JSON text of a graph."""

NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.]{0,63}$"
"""Names of graphs, symbols, kernels, custom operations and their attributes."""

SHA256_PATTERN = r"^[0-9a-f]{64}$"
"""Digests of artifacts and of other bytes."""

DEVICE_PATTERN = r"(?i)^(cpu|(cuda|rocm)(:(0|[1-9][0-9]{0,3}))?)$"
"""`CPU`, `CUDA[:n]`, `ROCM[:n]` in any case."""

I64_MIN = -(1 << 63)
I64_MAX = (1 << 63) - 1
