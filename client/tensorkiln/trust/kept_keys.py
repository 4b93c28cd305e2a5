"""A client's stored copy of the keys that a service presented."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

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
