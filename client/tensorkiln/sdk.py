"""The client: graphs go to a compile service, programs that run here come back."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from .embedded import embedded_service
from .errors import RequestError, UnavailableError
from .options import CompileOptions
from .program import Program
from .request import GraphSource, compile_body, validate_body
from .settings import checked_key, resolve_settings
from .spec import CompiledProgram
from .target import Target
from .transport import Address, Transport
from .trust.connected import connect
from .trust.policy import resolve_policy
from .trust.programs import Answered
from .trust.record import SignedRecord

if TYPE_CHECKING:
    from .runtime.cuda import Driver

NATIVE = "cpu:native"
TargetSource = Target | str | Mapping[str, object]
OptionsSource = CompileOptions | Mapping[str, object]
Model = TypeVar("Model", bound=BaseModel)

_PARALLEL_FETCHES = 8


class _Programs(BaseModel):
    """The answer to `POST /compile`."""

    model_config = ConfigDict(frozen=True)

    programs: tuple[Answered, ...]
    signatures: tuple[SignedRecord | None, ...] = ()


class _Record(RootModel[dict[str, Any]]):
    """Any JSON object."""


class Client:
    """Compiles graphs at the service at `url`, or in an embedded service (a child process) when there is no URL.

    `url`, `timeout_s` (seconds that one call may take, retries included) and `cache_dir` default to what
    `tensorkiln.settings` says. A client may be used by several threads; its programs outlive it.

    `api_key` is sent to a service at a URL: an API key, a token, or a function that gives the token of each request.

    Only programs with a valid signature are loaded: by one of `trusted_keys` (base64url, or files of JSON Web Keys), or
    by the keys that the service showed at first use; compiled with `min_isolation` at least. `offline` uses what was
    compiled and loaded before, and no service. `tensorkiln.trust.policy` names their defaults.

    Use it in a `with` block, or `close` it; one that is forgotten closes its connections when it is collected.

    Every method raises a subclass of `TensorkilnError`: the one that the service describes, or `UnavailableError` when
    no service answers.
    """

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
        settings = resolve_settings(
            url, timeout_s=timeout_s, cache_dir=cache_dir, api_key=None if callable(api_key) else api_key
        )

        def locate() -> Address:
            if settings.url is not None:
                return Address(settings.url)
            return embedded_service(settings.home, settings.startup_timeout_s).address()

        def credential() -> str | None:
            # An embedded service knows its user already.
            return None if settings.url is None else checked_key(token()) if token is not None else settings.api_key

        self._transport = transport = Transport(locate, settings.timeout_s, credential)
        policy = resolve_policy(
            settings.home,
            cache_dir=cache_dir,
            trusted_keys=trusted_keys,
            min_isolation=min_isolation,
            offline=offline,
        )
        self._offline = policy.offline
        authority = settings.url or f"embedded:{settings.home}"
        self._trusted, self._artifacts = connect(authority, transport.get, policy, is_private=settings.url is None)
        weakref.finalize(self, self._transport.close)

    def compile(
        self,
        graph: GraphSource,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        threads: int | None = None,
        device: int | Driver | None = None,
    ) -> Program:
        """The program of `graph` for `target`, ready to be called with arrays.

        JSON (text, bytes or an object) is validated by the service. `cpu:native` means the CPU of this machine.
        `threads` is the number of threads that a CPU program may use, `device` the GPU that a CUDA program runs on;
        None leaves it to the program.
        """
        (compiled,) = self.compile_many(graph, [target], options)
        return self.load(compiled, threads=threads, device=device)

    def compile_many(
        self, graph: GraphSource, targets: Sequence[TargetSource], options: OptionsSource | None = None
    ) -> tuple[CompiledProgram, ...]:
        """The compiled program for each target, in order, from one request.

        They are records, for any machine: `load` makes one callable on the machine that it was compiled for.
        """
        if not targets:
            raise RequestError("compile needs at least one target.")
        parsed = [target if isinstance(target, Target) else Target.parse(target) for target in targets]
        asked = _options(options)
        body = compile_body(graph, parsed, asked)
        if self._offline:
            return self._trusted.kept(self._trusted.question(body, graph, parsed, asked))
        answer = _read(_Programs, self._transport.post("/compile", body))
        if len(answer.programs) != len(parsed):
            raise UnavailableError(f"The service returned {len(answer.programs)} programs for {len(parsed)} targets.")
        question = self._trusted.question(body, graph, parsed, asked)
        return self._trusted.answers(question, answer.programs, answer.signatures)

    def load(
        self, compiled: CompiledProgram, *, threads: int | None = None, device: int | Driver | None = None
    ) -> Program:
        """Fetch and verify the artifacts of a compiled program and make it callable.

        `DeviceError` when it was compiled for another kind of machine; a program for a GPU finds that out when called.
        """
        self._trusted.require(compiled)
        digests = sorted(compiled.artifacts)
        with ThreadPoolExecutor(_PARALLEL_FETCHES, thread_name_prefix="kiln-fetch") as pool:
            artifacts = dict(zip(digests, pool.map(self.artifact, digests), strict=True))
        return Program(compiled, artifacts.__getitem__, threads=threads, device=device)

    def program(self, digest: str, *, threads: int | None = None, device: int | Driver | None = None) -> Program:
        """A program that was compiled before, by its digest, with the canonical names of its symbols and vars."""
        return self.load(self._trusted.by_digest(digest), threads=threads, device=device)

    def stage(self, digest: str, name: str) -> str:
        """The IR text of one stage of a program that was compiled with `dump_stages`."""
        path = f"/programs/{quote(digest, safe='')}/stages/{quote(name, safe='')}"
        return self._transport.get(path).decode()

    def artifact(self, digest: str) -> bytes:
        """The bytes with this SHA-256."""
        return self._artifacts.get(digest)

    def validate(self, graph: GraphSource) -> dict[str, Any]:
        """What the service says about a valid graph; an invalid one raises its error."""
        return _read(_Record, self._transport.post("/validate", validate_body(graph))).root

    def capabilities(self) -> dict[str, Any]:
        """What the service can do: targets, node kinds, dtypes, limits, its build."""
        return _read(_Record, self._transport.get("/capabilities")).root

    def close(self) -> None:
        """Close the connections. The embedded service goes on for other clients and ends with this process."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _options(options: OptionsSource | None) -> CompileOptions:
    if isinstance(options, CompileOptions):
        return options
    try:
        return CompileOptions.model_validate(options or {})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RequestError(f"The compile option {where!r} cannot be used: {first['msg']}.") from None


def _read(model: type[Model], answer: bytes) -> Model:
    try:
        return model.model_validate_json(answer)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/" + "/".join(str(part) for part in first["loc"])
        raise UnavailableError(
            f"The service's answer is not one that this SDK understands (at {where}: {first['msg']}); "
            "use the same version of both."
        ) from None
