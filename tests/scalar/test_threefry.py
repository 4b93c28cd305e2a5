"""Known answers of Random123 for threefry2x32 with 20 rounds."""

from __future__ import annotations

import numpy as np

from passes import scalar
from tensorkiln.dtypes import DType
from tests.scalar.kernel import kernel

VECTORS = [
    (0, 0, 0x99BA4EFE6B200159),
    (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xBB002BE71CB996FC),
    (0x85A308D3243F6A88, 0x0370734413198A2E, 0x483DF7A0C4923A9C),
    (1, 0, 0xC0DE3F32508EFB2C),
    (0, 1, 0x96EB2785B435A7FA),
    (0x0000000100000000, 0, 0xCDDB151D375F238F),
    (0xDEADBEEFCAFEF00D, 0x0123456789ABCDEF, 0x1EF1C24EFE453279),
    (1, 0x0000000100000000, 0x3DF99F6B4233DC34),
]


def test_known_answers() -> None:
    compiled = kernel(
        lambda _, values: scalar.threefry(values[0], values[1]), (DType.UINT64, DType.UINT64), DType.UINT64
    )
    counter, key, expected = (np.array(column, np.uint64) for column in zip(*VECTORS, strict=True))
    assert compiled(counter, key).tolist() == expected.tolist()
