"""The keys of one service that a client believes: pinned, or those that it showed at first use and their successors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ..errors import UnavailableError, UntrustedArtifactError
from ..reasons import reason
from .kept_keys import KeptKeys
from .keys import KeySet, PublicKey

REFRESH_S: Final = 3600.0
"""How long a key that was brought to its end early may still be believed."""


class ServiceKeys:
    """The keys of the service called `authority`.

    `fetch` gives the body of its `GET /keys`; None when it is not to be asked. `pins`, when there are any, are all that
    is believed. Otherwise the keys are kept in a file in `directory`: those of the first answer, and later those that
    one of them endorses. `is_private` means that nobody else can answer for the service, so that every answer counts.
    `clock` gives seconds since 1970.
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
        """The file of the keys that were shown at first use."""
        return self._path

    def known(self) -> Mapping[str, PublicKey]:
        """The keys that are believed already, by `kid`: nobody is asked, and nothing is kept.

        UntrustedArtifactError when the file of keys is damaged.
        """
        return self._pins or self._read().by_kid()

    def known_after(self, offered: Iterable[PublicKey]) -> Mapping[str, PublicKey]:
        """The keys that would be believed, by `kid`, if the service showed those `offered`; nothing is kept.

        UntrustedArtifactError when the file of keys is damaged.
        """
        return self._pins or self._read().with_offered(offered)

    async def look_up(self, kid: str) -> Mapping[str, PublicKey]:
        """The believed keys by `kid`, after asking the service when `kid` is not among them or they are old.

        UntrustedArtifactError when `kid` is not among them still, or when the file of keys is damaged; UnavailableError
        when the service does not answer and `kid` is not known.
        """
        if self._pins:
            return self._pins
        # Other threads do the same: whatever they keep meanwhile, what was heard here counts here.
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
        """What is believed from now on; None when the service does not say, and that is not needed."""
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
        # Another client of this user may have heard since of a key that was revoked.
        before = max(self._read(), self._kept, key=lambda kept: kept.asked)
        is_first = self._is_private or not before.keys
        known = offered if is_first else tuple(before.with_offered(offered).values())
        kept = KeptKeys(keys=known, asked=self._clock())
        kept.write(self._path)
        return kept

    def _is_old(self, kept: KeptKeys) -> bool:
        # A clock that was put back says nothing of how long it has been.
        return not 0 <= self._clock() - kept.asked <= REFRESH_S

    def _read(self) -> KeptKeys:
        try:
            return KeptKeys.read(self._path)
        except ValidationError:
            # To start over would be to trust the server that answers now.
            raise UntrustedArtifactError(
                f"The keys of {self._authority} in {self._path} are damaged; remove the file to trust it anew.",
                details={"reason": "unknown_key", "file": str(self._path)},
            ) from None
