"""A record is believed when all of it is as it was signed, by a key that is trusted and valid, and not otherwise."""

from __future__ import annotations

import json
import time

import pytest
from pydantic import ValidationError

from tensorkiln.errors import UntrustedArtifactError
from tensorkiln.trust import LEVELS, ActionRecord, PublicKey, SignedRecord, is_at_least, signed_bytes, verify
from tensorkiln.trust.encoding import canonical_json, from_base64url, to_base64url
from tests.trust.forgery import YEAR_S, altered, fresh_key, record, signed

KEY = fresh_key()
KEYS = {KEY.kid: KEY.public}
ACTION = "a" * 64


def reason(of: SignedRecord | None, *, now: float | None = None, minimum: str = "none", action: str = ACTION) -> str:
    with pytest.raises(UntrustedArtifactError) as refused:
        verify(of, KEYS, action=action, now=time.time() if now is None else now, minimum_isolation=minimum)
    assert refused.value.code == "artifact.untrusted"
    return refused.value.details["reason"]


def test_a_signed_record_is_believed() -> None:
    good = record(KEY)
    assert verify(signed(KEY, good), KEYS, action=ACTION, now=time.time(), minimum_isolation="process") == good


def test_sent_and_stored_bytes_are_the_record() -> None:
    sent = signed(KEY, record(KEY))
    assert SignedRecord.model_validate_json(sent.to_json()) == sent
    assert sent.to_json() == canonical_json(json.loads(sent.to_json()))


def test_a_record_without_a_signature_of_another_key_or_of_another_action_is_refused() -> None:
    assert reason(None) == "unsigned"
    other = fresh_key()
    assert reason(signed(other, record(other))) == "unknown_key"
    assert reason(signed(other, record(KEY))) == "bad_signature"
    assert reason(signed(KEY, record(KEY)), action="0" * 64) == "swapped_action"


@pytest.mark.parametrize(
    "changes",
    [
        {"action": "0" * 64},
        {"program": "0" * 64},
        {"artifacts": ("d" * 64,)},
        {"artifacts": ("e" * 64, "d" * 64)},
        {"stages": {"lower": "0" * 64}},
        {"build_id": ""},
        {"isolation": "external"},
        {"worker": "other"},
        {"issued_at": 1},
        {"request": record(KEY).request.model_copy(update={"options": {"fast_math": True}})},
        {"request": record(KEY).request.model_copy(update={"target": {}})},
    ],
)
def test_no_field_of_a_record_can_be_changed(changes: dict[str, object]) -> None:
    changed = altered(signed(KEY, record(KEY)), **changes)
    assert reason(changed, action=changed.record.action) == "bad_signature"


def test_every_bit_of_a_signature_counts() -> None:
    good = signed(KEY, record(KEY))
    content = from_base64url(good.signature)
    for position in range(0, 512, 7):
        flipped = bytearray(content)
        flipped[position // 8] ^= 1 << position % 8
        bad = SignedRecord(record=good.record, signature=to_base64url(bytes(flipped)))
        assert reason(bad) == "bad_signature"


def test_a_signature_for_another_purpose_is_none() -> None:
    good = record(KEY)
    without_domain = signed_bytes(good).partition(b"\0")[2]
    assert reason(SignedRecord(record=good, signature=KEY.sign(without_domain))) == "bad_signature"


def test_a_key_is_believed_in_its_time_alone() -> None:
    good, now = signed(KEY, record(KEY)), time.time()
    assert reason(good, now=now + YEAR_S + 10) == "expired_key"
    assert reason(good, now=now - 10_000) == "expired_key"
    assert reason(signed(KEY, record(KEY, issued_at=int(now) - 10_000))) == "expired_key"
    assert reason(signed(KEY, record(KEY, issued_at=int(now) + 2 * YEAR_S))) == "expired_key"


@pytest.mark.parametrize("stated", ["none", "", "sandbox of mine", *LEVELS])
@pytest.mark.parametrize("minimum", LEVELS)
def test_isolation_below_the_minimum_is_refused(stated: str, minimum: str) -> None:
    made = signed(KEY, record(KEY, isolation=stated))
    if stated in LEVELS and LEVELS.index(stated) >= LEVELS.index(minimum):
        assert is_at_least(stated, minimum)
        assert verify(made, KEYS, action=ACTION, now=time.time(), minimum_isolation=minimum)
    else:
        assert reason(made, minimum=minimum) == "isolation"


def test_the_levels_are_those_that_a_sandbox_states() -> None:
    from service.sandbox.levels import Level

    assert list(LEVELS) == ["none", *Level]


@pytest.mark.parametrize(
    "wrong", [{"version": 2}, {"action": "A" * 64}, {"issued_at": "1"}, {"more": 1}, {"key": "short"}, {"worker": 1}]
)
def test_a_record_of_another_form_is_none(wrong: dict[str, object]) -> None:
    fields = json.loads(canonical_json(record(KEY).model_dump(mode="json", by_alias=True)))
    ActionRecord.model_validate_json(json.dumps(fields))
    with pytest.raises(ValidationError):
        ActionRecord.model_validate_json(json.dumps({**fields, **wrong}))


def test_a_key_with_the_id_of_another_is_none() -> None:
    fields = {**KEY.public.model_dump(), "x": fresh_key().x}
    with pytest.raises(ValidationError, match="thumbprint"):
        PublicKey.model_validate(fields)
