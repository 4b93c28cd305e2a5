"""The keys of a service: a directory with a file for each, one of which signs."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from service import clock
from tensorkiln.errors import UnavailableError
from tensorkiln.trust.encoding import from_base64url, to_base64url
from tensorkiln.trust.keys import Endorsement, KeySet, PublicKey, endorsed_bytes, thumbprint
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tensorkiln.whole_file import whole_file

SUFFIX = ".jwk"
DAY_S: Final = 86_400
LIFETIME_S: Final = 365 * DAY_S
"""How long a key is valid, unless it is rotated before."""
OVERLAP_S: Final = 30 * DAY_S
"""Seconds that a key stays valid after its successor is made; a key with less time left is rotated automatically."""
TRY_EVERY_S: Final = 60.0
"""Seconds until the next try to make a successor, after one has failed."""
_LOOK_EVERY_S: Final = 1.0
_DIRECTORY_MODE: Final = 0o700
_log = structlog.get_logger()


class KeyFile(PublicKey):
    """A JSON Web Key of RFC 8037. `d` is the private half, which is dropped when the key has a successor."""

    d: str | None = None

    @staticmethod
    def fresh(nbf: int, exp: int) -> KeyFile:
        """A new key that is valid from `nbf` until before `exp`, seconds since 1970."""
        private = Ed25519PrivateKey.generate()
        x = to_base64url(private.public_key().public_bytes_raw())
        return KeyFile(kid=thumbprint(x), x=x, nbf=nbf, exp=exp, d=to_base64url(private.private_bytes_raw()))

    @property
    def public(self) -> PublicKey:
        return PublicKey.model_validate(self.model_dump(exclude={"d"}))

    def sign(self, message: bytes) -> str:
        """The signature in base64url. The key must have its private half."""
        assert self.d is not None, "a key with a successor signs no more"
        return to_base64url(_private(self.d).sign(message))

    def endorsed_by(self, older: KeyFile) -> KeyFile:
        """This key with an endorsement signed by an older one."""
        endorsement = Endorsement(kid=older.kid, signature=older.sign(endorsed_bytes(self)))
        return self.model_copy(update={"endorsement": endorsement})


@lru_cache(maxsize=4)
def _private(d: str) -> Ed25519PrivateKey:
    """Cached, because loading a key takes as long as signing."""
    return Ed25519PrivateKey.from_private_bytes(from_base64url(d))


def read_key(path: Path) -> KeyFile:
    """Read a key. UnavailableError when the file holds none, or when other users may open a private key."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            key = KeyFile.model_validate_json(file.read())
    except (OSError, ValidationError) as error:
        raise UnavailableError(f"The key {path} cannot be used: {error}.") from error
    if key.d is not None and mode & 0o077:
        raise UnavailableError(f"The key {path} is open to others (mode {mode:o}): run chmod 600 on it, or rotate it.")
    return key


def write_key(directory: Path, key: KeyFile) -> None:
    """Write or replace the file of a key, for its owner alone if it can sign. OSError when that is not possible."""
    with whole_file(directory / f"{key.kid}{SUFFIX}", 0o600 if key.d is not None else 0o644) as file:
        file.write(key.model_dump_json(exclude_none=True).encode() + b"\n")


class Keyring:
    """The keys in `directory`, for several processes; `public_directory` gets the public half of every key.

    Every method raises UnavailableError when a directory or a key in it cannot be used.
    """

    def __init__(self, directory: Path, *, public_directory: Path | None = None) -> None:
        self._directory = directory
        self._public_directory = public_directory
        self._keys: dict[str, KeyFile] = {}
        self._stamp: tuple[int, ...] = ()
        self._looked_at = self._tries_at = float("-inf")

    def signer(self) -> KeyFile:
        """The key that signs now: the newest valid one, or a new one, if there is none with enough time left.

        UnavailableError when there is no key and none can be made, or when every key begins in the future.
        """
        newest = self._newest()
        if newest is not None and (self._has_time(newest) or clock.monotonic() < self._tries_at):
            return newest
        try:
            with self._exclusive():
                newest = self._newest()
                return newest if newest is not None and self._has_time(newest) else self._succeed(newest, OVERLAP_S)
        except UnavailableError as error:
            newest = self._newest()
            if newest is None:
                raise
            self._tries_at = clock.monotonic() + TRY_EVERY_S
            left = int(newest.exp - clock.time()) // DAY_S
            _log.error(
                "the signing key could not be rotated; it is tried again",
                key=newest.kid,
                days_left=left,
                reason=str(error),
            )
            return newest

    def public(self) -> Mapping[str, PublicKey]:
        """The public halves of all keys that have not expired, by `kid`."""
        now = clock.time()
        return {kid: key for kid, key in self._current().items() if key.exp > now}

    def published(self) -> KeySet:
        """All keys ever made, the newest first; ended ones are included so that clients learn of their end."""
        # Of two that began in the same second, the one that signs is the newer.
        keys = sorted(self._current().values(), key=lambda key: (-key.nbf, key.d is None, key.kid))
        return KeySet(keys=tuple(key.public for key in keys))

    def publish(self) -> None:
        """Copy the keys that the public directory lacks, such as those made before it was set."""
        if self._public_directory is None:
            return
        there = Keyring(self._public_directory)._current()
        with self._exclusive():
            for kid, key in self._current().items():
                if there.get(kid) != _shown(key):
                    self._show(key)

    def rotate(self, overlap_s: int = OVERLAP_S) -> KeyFile:
        """Make a new signing key. The old one stays valid for `overlap_s` seconds and loses its private half."""
        with self._exclusive():
            return self._succeed(self._newest(), overlap_s)

    def revoke(self, kid: str) -> KeyFile:
        """End a key at once: its signatures are no longer trusted. UnavailableError when there is no such key."""
        with self._exclusive():
            key = self._current().get(kid)
            if key is None:
                raise UnavailableError(f"There is no key {kid} in {self._directory}.")
            return self._write(key.model_copy(update={"exp": min(key.exp, int(clock.time())), "d": None}))

    def _has_time(self, key: KeyFile) -> bool:
        return key.exp - clock.time() > OVERLAP_S

    def _succeed(self, older: KeyFile | None, overlap_s: int) -> KeyFile:
        begin = int(clock.time())
        if older is None:
            return self._write(KeyFile.fresh(begin, begin + LIFETIME_S))
        # The older key may begin in the future, if another clock is ahead; it endorses no key that begins earlier.
        begin = max(begin, older.nbf)
        # In this order: there is always a key that signs.
        key = self._write(KeyFile.fresh(begin, begin + LIFETIME_S).endorsed_by(older))
        self._write(older.model_copy(update={"exp": min(older.exp, begin + overlap_s), "d": None}))
        return key

    def _newest(self) -> KeyFile | None:
        """The newest key that can sign now; None when there is none. UnavailableError when all begin in the future."""
        now = clock.time()
        signing = [key for key in self._current().values() if key.d is not None and now < key.exp]
        begun = [key for key in signing if key.nbf <= now + CLOCK_SKEW_S]
        if signing and not begun:
            # A new key beside it would have no endorsement, and no client would trust it.
            first = min(signing, key=lambda key: key.nbf)
            raise UnavailableError(
                f"The key {first.kid} in {self._directory} begins {first.nbf - now:.0f} s after the time of this "
                f"machine, more than the {CLOCK_SKEW_S} s that clocks may differ by. Set the clock of this machine; if "
                f"the clock that made the key was wrong, `python -m tensorkiln_server trust revoke {first.kid}`."
            )
        return max(begun, key=lambda key: (key.nbf, key.kid), default=None)

    def _current(self) -> dict[str, KeyFile]:
        if clock.monotonic() - self._looked_at < _LOOK_EVERY_S:
            return self._keys
        try:
            paths = sorted(self._directory.glob(f"*{SUFFIX}"))
            stamp = tuple(number for path in paths for number in (path.stat().st_ino, path.stat().st_mtime_ns))
        except OSError as error:
            raise UnavailableError(
                f"The keys in {self._directory} (KILN_KEYS, or KILN_HOME) cannot be read: {error}."
            ) from error
        if stamp != self._stamp:
            self._keys = {key.kid: key for key in map(read_key, paths)}
            self._stamp = stamp
        self._looked_at = clock.monotonic()
        return self._keys

    def _show(self, key: KeyFile) -> None:
        if self._public_directory is None:
            return
        try:
            self._public_directory.mkdir(parents=True, exist_ok=True)
            write_key(self._public_directory, _shown(key))
        except OSError as error:
            raise UnavailableError(
                f"The public half of the key cannot be written to {self._public_directory} (KILN_PUBLIC_KEYS): {error}."
            ) from error

    def _write(self, key: KeyFile) -> KeyFile:
        # Published first: no unpublished key ever signs, and a revocation reaches the services in any case.
        self._show(key)
        write_key(self._directory, key)
        self._looked_at = float("-inf")
        return key

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        with exclusive(self._directory, ".lock", "KILN_KEYS"):
            self._looked_at = float("-inf")
            yield


@contextmanager
def exclusive(directory: Path, lock: str, setting: str) -> Generator[None]:
    """Hold the lock in a directory of keys, made with mode 0700, during the block.

    UnavailableError when that fails or the block cannot write; it names the `setting`.
    """
    try:
        directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        with open(os.open(directory / lock, os.O_RDWR | os.O_CREAT, 0o600), "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UnavailableError(
            f"The directory {directory} ({setting}, or KILN_HOME) cannot be written to: {error}."
        ) from error


def _shown(key: KeyFile) -> KeyFile:
    return key.model_copy(update={"d": None})
