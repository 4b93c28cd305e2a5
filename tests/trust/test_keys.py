"""Keys are made once, kept from others, and followed by successors that they vouch for, whatever a clock says."""

from __future__ import annotations

import json
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from service.trust.keyring import LIFETIME_S, OVERLAP_S, KeyFile, Keyring, write_key
from tensorkiln.errors import UnavailableError
from tensorkiln.trust.keys import PublicKey, thumbprint, with_endorsed
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tests.clocks import HandClock, LateClock, by
from tests.trust.conftest import AtOnce, Ran
from tests.trust.forgery import fresh_key

DAY_S = 86_400


@pytest.fixture
def clock() -> HandClock:
    return HandClock(time.time())


@pytest.fixture
def keyring(tmp_path: Path, clock: HandClock) -> Keyring:
    return by(clock, Keyring(tmp_path))


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.jwk"))


def test_the_first_use_makes_one_key_that_only_its_owner_can_read(tmp_path: Path) -> None:
    signer = Keyring(tmp_path / "keys").signer()
    (path,) = files(tmp_path / "keys")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert Keyring(tmp_path / "keys").signer() == signer
    assert all(key.model_dump().get("d") is None for key in Keyring(tmp_path / "keys").published().keys)


def test_processes_that_start_at_once_agree_on_one_key(at_once: AtOnce, tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from service.trust.keyring import Keyring
print(Keyring(Path(sys.argv[1])).signer().kid)
"""
    (kid,) = set(at_once(script, 8, str(tmp_path / "keys")))
    assert kid.strip() == Keyring(tmp_path / "keys").signer().kid


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_not_used(tmp_path: Path, mode: int) -> None:
    Keyring(tmp_path).signer()
    files(tmp_path)[0].chmod(mode)
    with pytest.raises(UnavailableError, match="chmod 600"):
        Keyring(tmp_path).signer()


@pytest.mark.parametrize("content", [b"", b"{}", b"not json"])
def test_a_file_that_holds_no_key_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.jwk").write_bytes(content)
    with pytest.raises(UnavailableError, match=r"broken\.jwk"):
        Keyring(tmp_path).signer()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="file"):
        Keyring(tmp_path / "file" / "keys").signer()


def test_rotation_leaves_the_older_key_valid_for_a_time_and_unable_to_sign(
    keyring: Keyring, clock: HandClock, tmp_path: Path
) -> None:
    older = keyring.signer()
    newer = keyring.rotate(100)
    assert keyring.signer().kid == newer.kid != older.kid
    assert keyring.public().keys() == {older.kid, newer.kid}
    assert '"d"' not in (tmp_path / f"{older.kid}.jwk").read_text()
    clock.at += 101
    assert keyring.public().keys() == {newer.kid}
    assert [key.kid for key in keyring.published().keys] in ([newer.kid, older.kid], [older.kid, newer.kid])


def test_a_key_near_its_end_has_a_successor_by_itself(keyring: Keyring, clock: HandClock) -> None:
    first = keyring.signer()
    clock.at += LIFETIME_S - OVERLAP_S - 10
    assert keyring.signer().kid == first.kid
    clock.at += 20
    second = keyring.signer()
    assert second.kid != first.kid
    assert second.endorsement is not None
    assert second.endorsement.kid == first.kid


def without_lock(directory: Path) -> Path | None:
    """A directory of keys in which nothing can be locked, which holds for root as well."""
    (directory / ".lock").unlink()
    (directory / ".lock").mkdir()
    return None


def without_public_directory(directory: Path) -> Path | None:
    (directory / "file").write_text("")
    return directory / "file" / "public"


@pytest.mark.parametrize("spoil", [without_lock, without_public_directory])
def test_a_key_near_its_end_signs_as_long_as_it_can_have_no_successor(
    clock: HandClock, tmp_path: Path, spoil: Callable[[Path], Path | None]
) -> None:
    first = by(clock, Keyring(tmp_path)).signer()
    public = spoil(tmp_path)
    keyring = by(clock, Keyring(tmp_path, public_directory=public))
    clock.at = first.exp - OVERLAP_S + 10
    with capture_logs() as logs:
        assert keyring.signer() == first
        assert keyring.signer() == first, "and says so once"
    (line,) = logs
    assert (line["log_level"], line["key"], line["days_left"]) == ("error", first.kid, 29)
    assert str(public or tmp_path) in line["reason"]
    clock.at = first.exp + 1
    with pytest.raises(UnavailableError, match=str(public or tmp_path)):
        keyring.signer()


def test_a_key_has_its_successor_once_that_can_be_written(
    keyring: Keyring, clock: HandClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.trust.keyring.TRY_EVERY_S", 0.0)
    first = keyring.signer()
    without_lock(tmp_path)
    clock.at = first.exp - OVERLAP_S + 10
    assert keyring.signer() == first
    (tmp_path / ".lock").rmdir()
    second = keyring.signer()
    assert second.endorsement is not None
    assert second.endorsement.kid == first.kid


def test_a_revoked_key_is_valid_no_more_and_vouches_for_nobody(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    stolen = keyring.signer()
    keyring.revoke(stolen.kid)
    assert stolen.kid not in keyring.public()
    next_key = keyring.signer()
    assert next_key.kid != stolen.kid
    assert next_key.endorsement is None
    with pytest.raises(UnavailableError, match="no key"):
        keyring.revoke("x" * 43)


def test_a_chain_of_endorsements_carries_trust_forward() -> None:
    first = fresh_key(-100)
    second = fresh_key(-50).endorsed_by(first)
    third = fresh_key(0).endorsed_by(second)
    stranger = fresh_key()
    trusted = with_endorsed({first.kid: first.public}, [third.public, stranger.public, second.public])
    assert trusted.keys() == {first.kid, second.kid, third.kid}


def test_an_endorsement_is_for_one_key_alone_and_in_the_time_of_its_signer() -> None:
    ended = fresh_key(-1000, -500)
    late = fresh_key(-100).endorsed_by(ended)
    assert with_endorsed({ended.kid: ended.public}, [late.public]).keys() == {ended.kid}
    first = fresh_key(-100)
    second = fresh_key().endorsed_by(first)
    thief = fresh_key().model_copy(update={"endorsement": second.endorsement})
    assert with_endorsed({first.kid: first.public}, [thief.public]).keys() == {first.kid}


def test_the_end_of_a_trusted_key_can_be_brought_forward_and_not_put_off() -> None:
    key = fresh_key()
    sooner, later = (key.public.model_copy(update={"exp": key.exp + change}) for change in (-10, 10))
    assert with_endorsed({key.kid: key.public}, [sooner])[key.kid].exp == key.exp - 10
    assert with_endorsed({key.kid: key.public}, [later])[key.kid].exp == key.exp


def test_a_thumbprint_is_that_of_the_rfc() -> None:
    # RFC 8037 appendix A.3.
    x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    assert thumbprint(x) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert PublicKey.of(x).kid == thumbprint(x)
    with pytest.raises(ValueError, match="32 bytes"):
        thumbprint("AAAA")


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
def test_a_key_ahead_of_the_clock_is_named_and_has_no_other_beside_it(tmp_path: Path, command: str) -> None:
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


def test_keys_are_listed_rotated_and_revoked_at_the_command_line(ran: Ran, tmp_path: Path) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return ran("service.trust", *arguments, KILN_KEYS=str(tmp_path / "keys"))

    # A key that begins within the skew is valid already.
    now, soon = int(time.time()), tmp_path / "soon"
    soon.mkdir()
    write_key(soon, KeyFile.fresh(now + CLOCK_SKEW_S // 2, now + DAY_S))
    assert json.loads(ran("service.trust", "list", KILN_KEYS=str(soon)).stdout)["keys"][0]["valid"]
    (first,) = json.loads(command("rotate").stdout)["keys"]
    listed = json.loads(command("rotate", "--overlap-days", "1").stdout)["keys"]
    assert len(listed) == 2
    assert all(key["valid"] and "d" not in key for key in listed)
    revoked = json.loads(command("revoke", first["kid"]).stdout)["keys"]
    assert {key["kid"]: key["valid"] for key in revoked}[first["kid"]] is False
    assert json.loads(command("list").stdout)["keys"] == revoked
    for kid in ("-" * 43, "--nonsense"):
        assert f"There is no key {kid} " in command("revoke", kid).stderr
    assert "the key's id" in command("revoke", "--help").stdout
    refused = command("revoke", "nonsense")
    assert refused.returncode == 1
    assert "no key nonsense" in refused.stderr
