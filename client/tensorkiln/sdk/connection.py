"""The connection of a client to its service: transport, keys, and cached answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeVar

from ..cache import LocalCache
from ..compiler_build import build
from ..embedded import Address, EmbeddedService, embedded_service
from ..errors import NotFoundError, RequestError, TensorkilnError
from ..graph import Graph
from ..runner import LoopRunner
from ..settings import checked_key, resolve_settings
from ..transport import Transport
from ..trust.policy import Policy, resolve_policy
from ..uncollected import uncollected
from .asked import Asked

if TYPE_CHECKING:
    from ..artifacts import ArtifactCache
    from ..spec import CompiledProgram
    from ..trust.programs import TrustedPrograms
    from ..trust.record import SignedRecord
    from .translations import Translations

T = TypeVar("T")

_TRANSLATION_BYTES: Final = 64 << 20


class Connection:
    """The base of all clients. `Client` describes the arguments."""

    _runner = LoopRunner()

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_s: float | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        api_key: str | Callable[[], str] | None = None,
        trusted_keys: Sequence[str] | None = None,
        min_isolation: str | None = None,
        offline: bool | None = None,
    ) -> None:
        token = api_key if callable(api_key) else None
        key = None if callable(api_key) else api_key
        settings = resolve_settings(url, timeout_s=timeout_s, cache_dir=cache_dir, api_key=key)
        policy = resolve_policy(
            settings.home,
            cache_dir=cache_dir,
            trusted_keys=trusted_keys,
            min_isolation=min_isolation,
            offline=offline,
        )

        def locate() -> Address:
            if policy.offline:
                raise NotFoundError("This needs a service, and offline is set; unset it and try again.")
            return self._service().address() if settings.url is None else Address(settings.url)

        def credential() -> str | None:
            # An embedded service authenticates its user without a key.
            return None if settings.url is None else given_key(token) if token is not None else settings.api_key

        self._settings = settings
        self._policy = policy
        self._keys = settings.home / "keys"
        self._transport = Transport(self._runner, locate, settings.timeout_s, credential)

    @property
    def offline(self) -> bool:
        """Whether the client uses the cache only, and no service."""
        return self._policy.offline

    async def close(self) -> None:
        """Close the connections. The embedded service keeps running for other clients and ends with this process.

        A call that is running raises `UnavailableError`.
        """
        await self._transport.close()

    def _service(self) -> EmbeddedService:
        return embedded_service(self._settings.home, self._settings.startup_timeout_s)

    @property
    def _is_private(self) -> bool:
        """Whether the client uses the embedded service."""
        return self._settings.url is None

    @property
    def _authority(self) -> str:
        return self._settings.url or f"embedded:{self._settings.home}"

    @cached_property
    def _believed(self) -> tuple[TrustedPrograms, ArtifactCache]:
        return self._believed_under(self._policy)

    @property
    def _trusted(self) -> TrustedPrograms:
        return self._believed[0]

    @property
    def _artifacts(self) -> ArtifactCache:
        return self._believed[1]

    @cached_property
    def _kept(self) -> TrustedPrograms | None:
        # The embedded service runs the compiler that is installed here, so its cached programs need no service.
        return self._believed_under(replace(self._policy, offline=True))[0] if self._is_private else None

    def _believed_under(self, policy: Policy) -> tuple[TrustedPrograms, ArtifactCache]:
        with uncollected():
            from ..trust.connected import connect

        return connect(self._authority, self._transport.get, self._runner.offload, policy, is_private=self._is_private)

    @cached_property
    def _translations(self) -> Translations:
        from .translations import Translations

        ask = None if self.offline else partial(self._transport.post, "/translate")
        kept = LocalCache(self._policy.cache / "translations", _TRANSLATION_BYTES)
        return Translations(self._authority, ask, kept, self._runner.offload, build if self._is_private else None)

    async def _kept_of_this_build(self, asked: Asked) -> tuple[CompiledProgram, ...] | None:
        """Cached programs of the installed compiler build, signed by a valid key; only for a `Graph` and one target."""
        graph = asked.graph
        # Only a service has stage dumps. KILN_SALT invalidates programs stored under another salt.
        is_plain = len(asked.targets) == 1 and not asked.options.dump_stages and not os.environ.get("KILN_SALT")
        if self._kept is None or not isinstance(graph, Graph) or not is_plain:
            return None
        from ..trust.keys import is_valid_in

        try:
            read = await self._runner.offload(lambda: Graph.model_validate_json(graph.to_json()))
            found = await self._kept.kept(await self._kept.question(asked.body, read, asked.targets, asked.options))
            records = [(await self._kept.require(each)).record for each in found]
            digests = sorted(frozenset[str]().union(*(each.artifacts for each in found)))
            is_whole = None not in [await self._artifacts.kept(digest) for digest in digests]
        except Exception:
            # A service reports errors in the graph better, and replaces a broken cache entry.
            return None
        build_id = (await self._runner.offload(build)).build_id
        is_current = all(record.build_id == build_id and is_valid_in(self._keys, record.key) for record in records)
        # A program compiled without tuning measurements may be outdated: there may be measurements by now.
        is_settled = asked.options.tuned == "off" or all(each.tuning is not None for each in found)
        return found if is_whole and is_current and is_settled else None

    async def _require_signed(self, compiled: CompiledProgram) -> SignedRecord:
        """The signed record of the program, if possible without starting a service. UntrustedArtifactError without."""
        from ..trust.keys import is_valid_in

        if self._kept is not None:
            with suppress(TensorkilnError):
                signed = await self._kept.require(compiled)
                if is_valid_in(self._keys, signed.record.key):
                    return signed
        return await self._trusted.require(compiled)


def called(what: str, function: Callable[[], T]) -> T:
    """Call a function of the caller. RequestError for any exception that is not a TensorkilnError."""
    try:
        return function()
    except TensorkilnError:
        raise
    except Exception as failure:
        raise RequestError(f"{what} raised {type(failure).__name__}: {failure}") from failure


def given_key(token: Callable[[], object]) -> str | None:
    """Call the caller's key function. RequestError if it raises or does not return a valid key."""
    key = called("The function api_key", token)
    if not isinstance(key, str):
        raise RequestError(f"The function api_key returned {type(key).__name__}: return a string.")
    return checked_key(key)
