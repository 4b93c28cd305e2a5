"""Signatures beside the programs of an answer."""

from __future__ import annotations

from collections.abc import Iterable


def with_signatures(answer: bytes, signatures: Iterable[str]) -> bytes:
    """An answer to a compile request, as JSON, with the signed record (JSON) of each program; empty means unsigned."""
    listed = b",".join(signature.encode() or b"null" for signature in signatures)
    return b'%b,"signatures":[%b]}' % (answer.removesuffix(b"}"), listed)
