"""The published limits of one compile: the sizes of its module and its code.

A compile above them fails with `limit.exceeded` on every machine, instead of by its deadline or by lack of memory,
which depend on the machine. The figures beside them are measured.
"""

from __future__ import annotations

from typing import Final

MAX_OPERATIONS: Final = 2_000_000
"""Operations of the module after a stage.

A GPU target needs the most: 31 per node for a graph of 10 000 nodes (313 000), 34 for DenseNet-121 (109 000). At that
rate 50 000 nodes, the limit of a graph, stay below. Two million operations take some 700 MiB.
"""

MAX_CODE_BYTES: Final = 64 << 20
"""Bytes of an object file, of PTX, or of a cubin.

A graph of 10 000 nodes takes 0.6 MB as an object and 6.3 MB as PTX, DenseNet-121 0.3 MB and 1.5 MB. An answer may have
the code and, with dumps, its text several times, and at most 256 MiB.
"""
