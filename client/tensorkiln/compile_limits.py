"""The published limits of one compile: what its module and its code may grow to.

Above them a compile ends with `limit.exceeded`, the same on every machine, rather than at its deadline or out of
memory, which depend on the machine. The figures beside them were measured.
"""

from __future__ import annotations

from typing import Final

MAX_OPERATIONS: Final = 2_000_000
"""Operations of the module after a stage.

A GPU takes the most: 31 a node of a graph of 10 000 nodes (313 000), 34 of DenseNet-121 (109 000). At that rate 50 000
nodes, the most of a graph, stay below. Two million are some 700 MiB.
"""

MAX_CODE_BYTES: Final = 64 << 20
"""Bytes of an object file, of PTX, or of a cubin.

A graph of 10 000 nodes takes 0.6 MB as an object and 6.3 MB as PTX, DenseNet-121 0.3 MB and 1.5 MB. An answer may have
the code and, with dumps, its text several times, and at most 256 MiB.
"""
