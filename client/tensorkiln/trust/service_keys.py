"""The trusted keys of one service: pinned, or presented at first use and kept, and their endorsed successors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ..errors import UnavailableError, UntrustedArtifactError
from ..reasons import reason
from ..whole_file import whole_file
from .keys import KeySet, PublicKey, with_endorsed
from .verify import CLOCK_SKEW_S


class KeptKeys(KeySet):
    """The trusted keys, and when the service was last `asked` for them, in seconds since 1970."""

    asked: float = 0.0

    @staticmethod
    def read(path: Path) -> KeptKeys:
        """Read keys from a file; none when there is no file. ValueError (through pydantic) when it is malformed."""
        try:
            content = path.read_bytes()
        except OSError:
            return KeptKeys(keys=())
        return KeptKeys.model_validate_json(content)

    def write(self, path: Path) -> None:
        """Write the keys, readable by this user only. Errors are ignored: the service is then asked again."""
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(path, 0o600) as file:
                file.write(self.model_dump_json(exclude_none=True).encode())

    def by_kid(self) -> dict[str, PublicKey]:
        """The keys by `kid`."""
        return {key.kid: key for key in self.keys}

    def with_offered(self, offered: Iterable[PublicKey]) -> dict[str, PublicKey]:
        """The trusted keys, by `kid`, after a service has presented the keys `offered`.

        A service presents every key that it ever made. So all endorsements by a key are known from the first answer
        after its end; a later one, by a revoked key for example, must come from a thief.
        """
        ended = {key.kid for key in self.keys if key.exp <= self.asked + CLOCK_SKEW_S}
        return with_endorsed(self.by_kid(), offered, ended)


REFRESH_S: Final = 3600.0
"""Seconds that a revoked key may still be trusted: the age at which cached keys are refreshed."""


class ServiceKeys:
    """The keys of the service `authority`.

    `fetch` returns the body of its `GET /keys`; None when it must not be asked. If there are `pins`, only these are
    trusted. Otherwise trusted keys are stored in a file in `directory`: the keys of the first answer, and later keys
    that one of them endorses. `is_private`: no other party can answer in place of the service, so every answer is
    trusted. `clock` returns seconds since 1970.
    """

    def __init__(
        self,
        authority: str,
        fetch: Callable[[], Awaitable[bytes]] | None,
        directory: Path,
        *,
        pins: Iterable[PublicKey] = (),
        is_private: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._authority = authority
        self._fetch = fetch
        self._path = directory / "services" / f"{sha256(authority.encode()).hexdigest()[:32]}.json"
        self._pins = {key.kid: key for key in pins}
        self._is_private = is_private
        self._clock = clock
        self._kept = KeptKeys(keys=())

    @property
    def path(self) -> Path:
        """The file of the keys presented at first use."""
        return self._path

    def known(self) -> Mapping[str, PublicKey]:
        """The keys that are trusted now, by `kid`, without asking the service or storing anything.

        UntrustedArtifactError when the file of keys is damaged.
        """
        return self._pins or self._read().by_kid()

    def known_after(self, offered: Iterable[PublicKey]) -> Mapping[str, PublicKey]:
        """The keys, by `kid`, that would be trusted if the service presented `offered`; nothing is stored.

        UntrustedArtifactError when the file of keys is damaged.
        """
        return self._pins or self._read().with_offered(offered)

    async def look_up(self, kid: str) -> Mapping[str, PublicKey]:
        """The trusted keys by `kid`; refreshed from the service first if `kid` is unknown or the keys are old.

        UntrustedArtifactError when `kid` is still unknown, or the file of keys is damaged; UnavailableError when the
        service does not answer and `kid` is unknown.
        """
        if self._pins:
            return self._pins
        # Other threads may replace `_kept` meanwhile; this call uses its own copy.
        kept = self._kept if self._kept.keys else self._read()
        known = kept.by_kid()
        if self._fetch is not None and (kid not in known or self._is_old(kept)):
            kept = await self._refresh(self._fetch, is_needed=kid not in known) or kept
            known = kept.by_kid()
        self._kept = max(self._kept, kept, key=lambda each: each.asked)
        if kid not in known:
            raise UntrustedArtifactError(
                f"The key {kid} was not among the keys of {self._authority} at first use, and none of them endorses "
                f"it. If the service was set up anew, delete {self._path}; if not, another server answers there.",
                details={"reason": "unknown_key", "key": kid, "file": str(self._path)},
            )
        return known

    async def _refresh(self, fetch: Callable[[], Awaitable[bytes]], *, is_needed: bool) -> KeptKeys | None:
        """Fetch, merge and store the keys; None when the service is unavailable and `is_needed` is false."""
        try:
            offered = KeySet.model_validate_json(await fetch()).keys
        except UnavailableError:
            if is_needed:
                raise
            return None
        except ValidationError as error:
            raise UntrustedArtifactError(
                f"{self._authority} shows no keys that can be used: {reason(error.errors(include_input=False)[0])}.",
                details={"reason": "unknown_key"},
            ) from None
        # Another client of this user may have stored a revocation since.
        before = max(self._read(), self._kept, key=lambda kept: kept.asked)
        is_first = self._is_private or not before.keys
        known = offered if is_first else tuple(before.with_offered(offered).values())
        kept = KeptKeys(keys=known, asked=self._clock())
        kept.write(self._path)
        return kept

    def _is_old(self, kept: KeptKeys) -> bool:
        # If the clock was set back, the age is unknown.
        return not 0 <= self._clock() - kept.asked <= REFRESH_S

    def _read(self) -> KeptKeys:
        try:
            return KeptKeys.read(self._path)
        except ValidationError:
            # Do not start over: that would trust whichever server answers now.
            raise UntrustedArtifactError(
                f"The keys of {self._authority} in {self._path} are damaged; remove the file to trust it anew.",
                details={"reason": "unknown_key", "file": str(self._path)},
            ) from None
