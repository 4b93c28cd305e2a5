"""Trusted compiled programs: their record is signed, matches the request, and matches the program byte for byte."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from time import time
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from ..artifacts import ArtifactCache
from ..cache import LocalCache
from ..errors import NotFoundError, UntrustedArtifactError
from ..immediate import Offload
from ..options import CompileOptions
from ..request import WrittenGraph
from ..spec import CacheInfo, CompiledProgram, StageRecord
from ..target import Target
from .question import Question
from .record import ActionRecord, SignedRecord
from .service_keys import ServiceKeys
from .verify import refused, require_agreement, verify

_MAX_QUESTIONS: Final = 16
_DIGEST: Final = re.compile(rb"[0-9a-f]{64}")
_KEPT: Final = CacheInfo(status="hit", reason="kept by this client")


class Answered(BaseModel):
    """What is read of a program in an answer: the program itself is the one that its record names."""

    model_config = ConfigDict(frozen=True)

    digest: str
    cache: Annotated[CacheInfo, BeforeValidator(lambda stated: _known(CacheInfo, stated))]
    stages: tuple[Annotated[StageRecord, BeforeValidator(lambda stated: _known(StageRecord, stated))], ...] = ()


def _known(model: type[BaseModel], stated: Any) -> Any:
    """The fields of a record in an answer, without unknown ones, which a later version of the service may add."""
    return {name: stated[name] for name in model.model_fields.keys() & stated} if isinstance(stated, dict) else stated


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources: signed records by action digest (None when offline), programs by SHA-256, and the cache `kept`.

    `offload` runs slow work.
    """

    signed: Callable[[str], Awaitable[SignedRecord]] | None
    programs: ArtifactCache
    kept: LocalCache
    offload: Offload


class TrustedPrograms:
    """The programs of the service `authority`, signed by one of `keys`, with `minimum_isolation` at least.

    Every method raises UntrustedArtifactError for a program that is not.
    """

    def __init__(self, authority: str, keys: ServiceKeys, minimum_isolation: str, sources: Sources) -> None:
        self._authority = authority
        self._keys = keys
        self._minimum_isolation = minimum_isolation
        self._sources = sources
        self._questions: OrderedDict[bytes, Question] = OrderedDict()
        self._lock = Lock()

    async def question(
        self, body: bytes, source: WrittenGraph, targets: Sequence[Target], options: CompileOptions
    ) -> Question:
        """The question of a request with this body; the last few questions are cached."""
        key = sha256(body).digest()
        with self._lock:
            found = self._questions.get(key)
        if found is None:
            found = await self._sources.offload(lambda: Question.of(source, targets, options))
        with self._lock:
            self._questions[key] = found
            self._questions.move_to_end(key)
            if len(self._questions) > _MAX_QUESTIONS:
                self._questions.popitem(last=False)
        return found

    async def answers(
        self, question: Question, answered: Sequence[Answered], signatures: Sequence[SignedRecord | None]
    ) -> tuple[CompiledProgram, ...]:
        """Verify the programs of an answer, rename them to the question's graph, and cache the answer."""
        unsigned = [None] * (len(answered) - len(signatures))
        found: list[CompiledProgram] = []
        for target, each, signed in zip(question.targets, answered, [*signatures, *unsigned], strict=True):
            record = await self._believe(each.digest, signed)
            question.require(record, target)
            seconds = {stage.name: stage.seconds for stage in each.stages}
            found.append(await self._renamed(record, question, each.cache, seconds))
            self._keep(f"question {question.key(target)}", record.action.encode())
        return tuple(found)

    async def kept(self, question: Question) -> tuple[CompiledProgram, ...]:
        """The cached programs that answer the question. NotFoundError when one is not cached."""
        found: list[CompiledProgram] = []
        for target in question.targets:
            action = self._answer(question, target)
            if action is None:
                raise NotFoundError(
                    f"The cache has no program of this graph for {target.cpu or target.arch} by {self._authority}; "
                    "compile it once without offline."
                )
            record = await self._record(action)
            question.require(record, target)
            found.append(await self._renamed(record, question, _KEPT, {}))
        return tuple(found)

    def _answer(self, question: Question, target: Target) -> str | None:
        """The cached action digest that answered the question, or None."""
        name = self._name(f"question {question.key(target)}")
        kept = self._sources.kept.read(name)
        if kept is not None:
            if _DIGEST.fullmatch(kept):
                return kept.decode()
            self._sources.kept.remove(name)
        return None

    async def by_digest(self, action: str) -> CompiledProgram:
        """The program of an action digest, in canonical names. NotFoundError when there is none."""
        return await self._program(await self._record(action))

    async def require(self, compiled: CompiledProgram) -> SignedRecord:
        """The signed record of `compiled`, which must list all of its code and constants."""
        signed = await self.signed(compiled.digest)
        strange = compiled.artifacts - set(signed.record.artifacts)
        if strange:
            message = f"The program {compiled.digest} names {min(strange)}, which its record does not."
            raise refused("swapped_artifact", message, compiled.digest)
        return signed

    async def _renamed(
        self, record: ActionRecord, question: Question, cache: CacheInfo, seconds: Mapping[str, float]
    ) -> CompiledProgram:
        program = (await self._program(record)).with_stages(seconds, record.stages)
        return await self._sources.offload(lambda: question.in_its_names(program, cache))

    async def _record(self, action: str) -> ActionRecord:
        return (await self.signed(action)).record

    async def signed(self, action: str) -> SignedRecord:
        """The signed record of an action digest, from the cache or the service. NotFoundError when there is none."""
        name = self._name(f"record {action}")
        kept = self._sources.kept.read(name)
        if kept is not None:
            try:
                signed = SignedRecord.model_validate_json(kept)
                await self._believe(action, signed)
                return signed
            except ValidationError:
                self._sources.kept.remove(name)
            except UntrustedArtifactError:
                # The key may have expired since; the service can sign with another.
                if self._sources.signed is None:
                    raise
        if self._sources.signed is None:
            raise NotFoundError(f"The program {action} of {self._authority} is not kept here, and offline is set.")
        signed = await self._sources.signed(action)
        await self._believe(action, signed)
        return signed

    async def _believe(self, action: str, signed: SignedRecord | None) -> ActionRecord:
        keys = await self._keys.look_up(signed.record.key) if signed is not None else {}
        record = verify(signed, keys, action=action, now=time(), minimum_isolation=self._minimum_isolation)
        if signed is not None:
            self._keep(f"record {action}", signed.to_json())
        return record

    async def content(self, record: ActionRecord) -> bytes:
        """The signed bytes of a record's program: its JSON in canonical names."""
        return await self._sources.programs.get(record.program)

    async def _program(self, record: ActionRecord) -> CompiledProgram:
        content = await self.content(record)
        program = await self._sources.offload(lambda: CompiledProgram.model_validate_json(content))
        require_agreement(program, record)
        return program

    def _keep(self, what: str, content: bytes) -> None:
        name = self._name(what)
        if self._sources.kept.read(name) != content:
            self._sources.kept.write(name, content)

    def _name(self, what: str) -> str:
        return sha256(f"{self._authority}\n{what}".encode()).hexdigest()
