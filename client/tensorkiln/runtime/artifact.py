"""The artifacts of a program, code and constants, verified before use."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from ..buffers import Buffer
from ..errors import DeviceError, UnavailableError
from ..expr import product


def verified(artifacts: Callable[[str], bytes], digest: str) -> bytes:
    """The artifact with this SHA-256. UnavailableError when its bytes have another."""
    content = artifacts(digest)
    actual = sha256(content).hexdigest()
    if actual != digest:
        raise UnavailableError(
            f"artifact {digest} is corrupt: its bytes have the SHA-256 {actual}; fetch it again",
            details={"expected": digest, "actual": actual},
        )
    return content


def constant_bytes(buffer: Buffer, artifacts: Callable[[str], bytes]) -> bytes:
    """The bytes of a constant. DeviceError when they do not match its shape, UnavailableError when corrupt."""
    if buffer.artifact is None:
        raise ValueError(f"buffer {buffer.id} is not a constant")
    content = verified(artifacts, buffer.artifact)
    count = product(buffer.shape)
    if not isinstance(count, int):
        raise DeviceError(f"constant {buffer.id} has the symbolic shape {buffer.shape}; compile the program again")
    size = count * buffer.dtype.itemsize
    if size != len(content):
        raise DeviceError(f"constant {buffer.id} has {size} bytes and its artifact {len(content)}")
    return content
