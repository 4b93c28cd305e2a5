"""What a job may have the service keep of its answer is bounded, in bytes and in number."""

from __future__ import annotations

import json

import pytest

from service.sandbox import frames
from service.sandbox.frames import MAX_HEADER_BYTES, MAX_HEADER_VALUES, Message
from service.sandbox.reply import MAX_PARTS, MAX_STAGES, TooMuchOutput
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import CrashedError, RequestError, TensorkilnError
from tensorkiln.limits import MAX_NODES
from tests.sandbox.test_frames import read

from .boxes import LIMITS, ping
from .shared import Boxes

pytestmark = pytest.mark.xdist_group("boxes")
MANY = MAX_HEADER_VALUES + 1
BROKEN = {
    "stages": frames.encode(frames.STAGE, b"load") * (MAX_STAGES + 1),
    "parts": b"".join(b"".join(frames.encode_part(f"{n}", b"")) for n in range(MAX_PARTS + 1)),
    "parts of one name": b"".join(frames.encode_part("a", b"")) * 2,
    "a long header": frames.PREFIX.pack(frames.DONE, MAX_HEADER_BYTES + 1),
    "a long problem": frames.PREFIX.pack(frames.FAILED, MAX_HEADER_BYTES + 1),
    "lists": frames.encode(frames.DONE, b'{"a":[%b[]]}' % (b"[]," * MANY)),
    "objects": frames.encode(frames.FAILED, b'{"a":[%b{}]}' % (b"{}," * MANY)),
    "levels": frames.encode(frames.DONE, b'{"a":%b' % (b"[" * MANY)),
}


def test_an_answer_of_too_many_pieces_is_none(boxes: Boxes) -> None:
    async def speaks(sandbox: Sandbox) -> None:
        for what, said in BROKEN.items():
            stages: list[str] = []
            with pytest.raises(CrashedError, match="garbled its answer"):
                await sandbox.run("speak", Message({}, {"frames": said}), LIMITS, stages.append)
            assert len(stages) == (MAX_STAGES if what == "stages" else 0), what
        await ping(sandbox)
        assert sandbox.restarts == 0

    boxes.run(speaks, warm_ups=["tests.sandbox.warm_ups:take_over"])


def test_a_problem_that_repeats_a_long_text_of_its_request_is_cut_and_arrives(boxes: Boxes) -> None:
    async def asks(sandbox: Sandbox) -> None:
        text = "[," * (MAX_HEADER_BYTES // 2)
        for body in ({"graph": {}, "target": text}, {"graph": {}, "target": "cpu", "options": {text: 1}}):
            request = Message({"build_id": "", "salt": ""}, {"body": json.dumps(body).encode()})
            with pytest.raises(RequestError) as caught:
                await sandbox.run("prepare", request, LIMITS)
            assert "[,[," in str(caught.value.to_problem())
            assert len(json.dumps(caught.value.to_problem())) < 10_000

    boxes.run(asks)


def test_the_answer_of_a_graph_that_is_all_constants_is_read() -> None:
    """Each constant is an artifact, of which the header has the digest and a part the bytes."""
    digests = [f"{number:064x}" for number in range(MAX_NODES)]
    message = Message({"artifacts": digests}, {f"artifact:{digest}": b"" for digest in digests})
    assert read(b"".join(frames.encode_message(message)), 16 << 20) == message


def test_output_that_looks_like_a_frame_is_output() -> None:
    said = frames.encode(frames.STAGE) * 10 + frames.encode(frames.DONE, b"{}")
    assert read(said, len(said)) == Message()
    with pytest.raises(TooMuchOutput):
        read(said, len(said) - 1)


def test_the_end_that_a_task_claims_is_not_believed(boxes: Boxes) -> None:
    async def end(sandbox: Sandbox) -> None:
        async def ended(what: str) -> TensorkilnError:
            with pytest.raises(TensorkilnError) as caught:
                await sandbox.run("ping", Message({"do": what}), LIMITS)
            return caught.value

        # A digest among the details would be one that the caller may read from then on.
        refused = await ended("refuse_and_claim")
        assert (type(refused), dict(refused.details)) == (RequestError, {"limit": 3})
        crashed = await ended("say_it_crashed")
        assert isinstance(crashed, CrashedError)
        assert "garbled" in crashed.message
        assert "cached" not in crashed.details

    boxes.run(end, warm_ups=("tests.sandbox.warm_ups:do_as_told",))
