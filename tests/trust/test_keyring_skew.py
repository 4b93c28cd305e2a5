"""Machines that share a folder of keys, whose clocks are apart: none makes a key that nobody vouches for."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from service.trust.keyring import KeyFile, Keyring, write_key
from tensorkiln.errors import UnavailableError
from tensorkiln.trust.keys import with_endorsed
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tests.clocks import LateClock, by
from tests.trust.conftest import Ran

DAY_S = 86_400


def behind(directory: Path, seconds: float) -> Keyring:
    """The keys as a machine has them whose clock is so far behind this one's."""
    return by(LateClock(seconds), Keyring(directory))


def test_a_machine_that_is_behind_signs_with_the_key_that_another_has_made(tmp_path: Path) -> None:
    ahead = Keyring(tmp_path)
    first = ahead.signer()
    newer = ahead.rotate()
    assert behind(tmp_path, CLOCK_SKEW_S - 5).signer() == newer
    assert Keyring(tmp_path).public().keys() == {first.kid, newer.kid}


def test_a_successor_that_a_machine_makes_that_is_behind_is_endorsed(tmp_path: Path) -> None:
    first = Keyring(tmp_path).signer()
    third = behind(tmp_path, 60).rotate(1)
    keys = Keyring(tmp_path).published().keys
    assert with_endorsed({first.kid: first.public}, keys).keys() == {first.kid, third.kid}
    assert Keyring(tmp_path).signer().kid == third.kid


@pytest.mark.parametrize("command", ["signer", "rotate"])
def test_a_key_of_a_clock_that_was_stepped_back_is_named_and_none_is_made_beside_it(
    tmp_path: Path, command: str
) -> None:
    key = Keyring(tmp_path).signer()
    stepped_back = behind(tmp_path, 2 * CLOCK_SKEW_S)
    with pytest.raises(UnavailableError, match=rf"{key.kid} .* {CLOCK_SKEW_S} s") as caught:
        getattr(stepped_back, command)()
    assert "clock" in str(caught.value)
    assert "revoke" in str(caught.value)
    assert [path.stem for path in tmp_path.glob("*.jwk")] == [key.kid]
    stepped_back.revoke(key.kid)
    assert stepped_back.signer().kid != key.kid


def test_an_older_key_that_signs_yet_is_not_kept_from_it_by_one_that_is_too_far_ahead(tmp_path: Path) -> None:
    now = int(time.time())
    older, ahead = KeyFile.fresh(now - 5, now + 90 * DAY_S), KeyFile.fresh(now + DAY_S, now + 90 * DAY_S)
    for key in (older, ahead):
        write_key(tmp_path, key)
    assert Keyring(tmp_path).signer() == older


def test_the_command_line_calls_a_key_valid_that_begins_within_the_skew(ran: Ran, tmp_path: Path) -> None:
    now = int(time.time())
    write_key(tmp_path, KeyFile.fresh(now + CLOCK_SKEW_S // 2, now + DAY_S))
    done = ran("service.trust", "list", KILN_KEYS=str(tmp_path))
    assert done.returncode == 0
    assert [key["valid"] for key in json.loads(done.stdout)["keys"]] == [True]
