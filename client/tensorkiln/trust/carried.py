"""Signed bundles: a program in `layer.kiln` and its signature in `layer.kiln.sig`.

The signature is a separate file because it states the signer and the time. Without it, bundles of equal programs are
equal bytes on every machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import time
from typing import Final

from pydantic import ValidationError

from ..bundle import Bundle, read_bundle, write_bundle
from ..errors import RequestError
from ..spec import CompiledProgram
from ..whole_file import whole_file
from .policy import resolve_demands
from .record import SignedRecord
from .verify import refused, require_agreement, verify

SUFFIX: Final = ".sig"
_MAX_SIGNATURE_BYTES: Final = 16 << 20


def signature_path(bundle: str | os.PathLike[str]) -> Path:
    """The path of the signature of a bundle."""
    return Path(f"{os.fspath(bundle)}{SUFFIX}")


def write_signed(
    path: str | os.PathLike[str],
    program: CompiledProgram,
    artifacts: Callable[[str], bytes],
    canonical: bytes,
    signed: SignedRecord,
) -> None:
    """Write a bundle and its signature. `canonical` is the program in its signed form. Errors as for `write_bundle`."""

    def sign() -> None:
        with whole_file(signature_path(path)) as file:
            file.write(signed.to_json())

    # The signature is written before the bundle, so that a reader of the bundle finds it.
    write_bundle(path, program, artifacts, signed=canonical, beside=sign)


def read_trusted(
    path: str | os.PathLike[str], trusted_keys: Sequence[str] | None = None, min_isolation: str | None = None
) -> Bundle:
    """Read the bundle at `path`; with pinned keys, its signature must be by one of them.

    `trusted_keys` and `min_isolation` default to the variables of `tensorkiln.trust.policy`. UntrustedArtifactError
    when the signature is not valid; its `details.reason` is that of `verify`, or `swapped_artifact`. RequestError for
    an invalid key or level, and for `min_isolation` without keys. Other errors as for `read_bundle`.
    """
    pins, minimum = resolve_demands(trusted_keys, min_isolation)
    if min_isolation is not None and not pins:
        raise RequestError("The isolation of a bundle can only be checked against trusted keys: give trusted_keys.")
    bundle = read_bundle(path)
    if pins:
        program, signed = bundle.program, signature_of(path)
        keys = {key.kid: key for key in pins}
        record = verify(signed, keys, action=program.digest, now=time(), minimum_isolation=minimum)
        if record.program != bundle.signed:
            raise refused(
                "swapped_artifact", f"{os.fspath(path)} holds another program than its record.", record.action
            )
        require_agreement(program, record)
    return bundle


def signature_of(path: str | os.PathLike[str]) -> SignedRecord | None:
    """The signed record beside a bundle; None when it is missing or malformed."""
    try:
        with open(signature_path(path), "rb") as file:
            return SignedRecord.model_validate_json(file.read(_MAX_SIGNATURE_BYTES))
    except (FileNotFoundError, ValidationError):
        return None
