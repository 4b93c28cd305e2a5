import numpy as np

from tests.reference.one_node import array, check, run_node

# Random123 kat_vectors, `threefry2x32 20`, with the words joined as high << 32 | low; and values from tinygrad.
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


def _node(dtype: str) -> dict[str, object]:
    return {"node": "threefry", "ctr_var": 0, "key_var": 1, "dtype": dtype}


def test_the_known_vectors_as_uint64() -> None:
    counters, keys, wanted = (array(column, "uint64") for column in zip(*VECTORS, strict=True))
    check(run_node(_node("uint64"), counters, keys), wanted)


def test_the_known_vectors_as_int32_pairs() -> None:
    counters, keys, wanted = (
        array(column, "uint64").view("<u4").reshape(-1, 2).astype(np.int32) for column in zip(*VECTORS, strict=True)
    )
    check(run_node(_node("int32"), counters, keys), wanted)


def test_one_key_serves_many_counters() -> None:
    wanted = array([0x99BA4EFE6B200159, 0xC0DE3F32508EFB2C], "uint64")
    check(run_node(_node("uint64"), array([0, 1], "uint64"), array(0, "uint64")), wanted)
