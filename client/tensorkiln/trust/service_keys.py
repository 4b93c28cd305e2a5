"""The keys of one service that a client believes: pinned, or those that it showed at first use and their successors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ..errors import UnavailableError, UntrustedArtifactError
from ..whole_file import whole_file
from .keys import KeySet, PublicKey, with_endorsed

REFRESH_S: Final = 3600.0
"""How long a key that was brought to its end early may still be believed."""


class ServiceKeys:
    """The keys of the service called `authority`.

    `fetch` gives the body of its `GET /keys`; None when it is not to be asked. `pins`, when there are any, are all that
    is believed. Otherwise the keys are kept in a file in `directory`: those of the first answer, and later those that
    one of them endorses. `is_private` means that nobody else can answer for the service, so that every answer counts.
    """

    def __init__(
        self,
        authority: str,
        fetch: Callable[[], Awaitable[bytes]] | None,
        directory: Path,
        *,
        pins: Iterable[PublicKey] = (),
        is_private: bool = False,
    ) -> None:
        self._authority = authority
        self._fetch = fetch
        self._path = directory / "services" / f"{sha256(authority.encode()).hexdigest()[:32]}.json"
        self._pins = {key.kid: key for key in pins}
        self._is_private = is_private
        self._known: dict[str, PublicKey] | None = None
        self._refreshed = 0.0

    @property
    def path(self) -> Path:
        """The file of the keys that were shown at first use."""
        return self._path

    def known(self) -> Mapping[str, PublicKey]:
        """The keys that are believed already, by `kid`: nobody is asked, and nothing is kept.

        UntrustedArtifactError when the file of keys is damaged.
        """
        return self._pins or self._load()

    async def look_up(self, kid: str) -> Mapping[str, PublicKey]:
        """The believed keys by `kid`, after asking the service when `kid` is not among them or they are old.

        UntrustedArtifactError when `kid` is not among them still, or when the file of keys is damaged; UnavailableError
        when the service does not answer and `kid` is not known.
        """
        if self._pins:
            return self._pins
        known = self._load() if self._known is None else self._known
        if self._fetch is not None and (kid not in known or self._is_old()):
            known = await self._refresh(known, self._fetch, is_needed=kid not in known)
        self._known = known
        if kid not in known:
            raise UntrustedArtifactError(
                f"The key {kid} is not one that {self._authority} showed at first use, nor endorsed by one. If "
                f"the service was set up anew, remove {self._path}; if not, somebody else answers for it.",
                details={"reason": "unknown_key", "key": kid, "file": str(self._path)},
            )
        return known

    async def _refresh(
        self, known: dict[str, PublicKey], fetch: Callable[[], Awaitable[bytes]], *, is_needed: bool
    ) -> dict[str, PublicKey]:
        try:
            offered = KeySet.model_validate_json(await fetch()).keys
        except UnavailableError:
            if is_needed:
                raise
            return known
        except ValidationError as error:
            raise UntrustedArtifactError(
                f"{self._authority} shows no keys that can be used: {error.errors()[0]['msg']}.",
                details={"reason": "unknown_key"},
            ) from None
        is_first = self._is_private or not known
        known = {key.kid: key for key in offered} if is_first else with_endorsed(known, offered)
        self._refreshed = time.monotonic()
        self._save(known)
        return known

    def _is_old(self) -> bool:
        if self._refreshed:
            return time.monotonic() - self._refreshed > REFRESH_S
        try:
            return time.time() - self._path.stat().st_mtime > REFRESH_S
        except OSError:
            return True

    def _load(self) -> dict[str, PublicKey]:
        try:
            content = self._path.read_bytes()
        except OSError:
            return {}
        try:
            return {key.kid: key for key in KeySet.model_validate_json(content).keys}
        except ValidationError:
            # To begin again would be to believe whoever answers now.
            raise UntrustedArtifactError(
                f"The keys of {self._authority} in {self._path} are damaged; remove the file to trust it anew.",
                details={"reason": "unknown_key", "file": str(self._path)},
            ) from None

    def _save(self, known: Mapping[str, PublicKey]) -> None:
        text = KeySet(keys=tuple(known.values())).model_dump_json(exclude_none=True)
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(self._path) as file:
                file.write(text.encode())
