"""Programs in files, with the word of their maker beside them: `layer.kiln` and `layer.kiln.sig`.

The signature has a file of its own because it says who compiled and when. The bundle does not: for the same program it
is the same bytes on every machine.
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
    """Where the signature of a bundle lies."""
    return Path(f"{os.fspath(bundle)}{SUFFIX}")


def write_signed(
    path: str | os.PathLike[str],
    program: CompiledProgram,
    artifacts: Callable[[str], bytes],
    canonical: bytes,
    signed: SignedRecord,
) -> None:
    """Write a bundle and its signature. `canonical` is the program as `signed` names it. Errors as `write_bundle`."""

    def sign() -> None:
        with whole_file(signature_path(path)) as file:
            file.write(signed.to_json())

    # The signature is written before the bundle, so that a reader of the bundle finds it.
    write_bundle(path, program, artifacts, signed=canonical, beside=sign)


def read_trusted(
    path: str | os.PathLike[str], trusted_keys: Sequence[str] | None = None, min_isolation: str | None = None
) -> Bundle:
    """The bundle at `path`, signed by one of the keys that are pinned, when any are.

    `trusted_keys` and `min_isolation` default to the variables that `tensorkiln.trust.policy` names.
    UntrustedArtifactError when it is not; its `details.reason` is that of `verify`, or `swapped_artifact`. RequestError
    for a key or a level that cannot be used, and for a `min_isolation` that nobody's signature could vouch for; and the
    errors of `read_bundle`.
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
    """The record beside a bundle; None where there is none that can be read."""
    try:
        with open(signature_path(path), "rb") as file:
            return SignedRecord.model_validate_json(file.read(_MAX_SIGNATURE_BYTES))
    except (FileNotFoundError, ValidationError):
        return None
