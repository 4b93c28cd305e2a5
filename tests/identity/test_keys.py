"""Keys as text, and the directory that they are kept in."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.identity.caller import Scope
from service.identity.keyring import Keyring, new_key, parse_key
from service.identity.register import TenantRecord
from service.server.listen import require_private_address
from service.settings import Settings
from tensorkiln.errors import NotFoundError, RequestError, UnavailableError


def test_a_key_is_read_back_from_its_text() -> None:
    key = new_key()
    assert parse_key(key.text) == key
    assert re.fullmatch(r"kiln_[0-9a-z]{10}_[0-9A-Za-z]{49}", key.text)
    assert key.secret not in repr(key)


@given(place=st.integers(0, 64), other=st.sampled_from("aZ9_"))
def test_a_mistyped_key_is_not_read(place: int, other: str) -> None:
    text = new_key().text
    changed = text[:place] + other + text[place + 1 :]
    assert changed == text or parse_key(changed) is None


@pytest.mark.parametrize("cut", [0, 5, 64])
def test_a_key_that_was_cut_off_is_not_read(cut: int) -> None:
    assert parse_key(new_key().text[:cut]) is None


def test_two_keys_have_nothing_in_common() -> None:
    keys = [new_key() for _ in range(200)]
    assert len({key.id for key in keys}) == len({key.secret for key in keys}) == 200


def test_a_key_is_verified_and_its_secret_is_not_stored(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "identity")
    key = keyring.make("laptop", "acme", [Scope.COMPILE], None)
    record = keyring.verify(key)
    assert record is not None
    assert (record.id, record.tenant, record.scopes, record.last4) == (key.id, "acme", {Scope.COMPILE}, key.text[-4:])
    stored = b"".join(path.read_bytes() for path in (tmp_path / "identity").iterdir())
    assert key.secret.encode() not in stored


def test_a_wrong_secret_and_an_unknown_id_are_refused(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    key, stranger = keyring.make("", "acme", [Scope.COMPILE], None), new_key()
    assert keyring.verify(stranger) is None
    assert keyring.verify(type(key)(key.id, stranger.secret)) is None


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "identity"
    Keyring(directory).make("", "acme", [Scope.COMPILE], None)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()} == {
        "register.json": 0o600,
        "secret": 0o600,
        "lock": 0o600,
    }


def test_hashes_of_another_directory_are_worth_nothing(tmp_path: Path) -> None:
    here, there = Keyring(tmp_path / "here"), Keyring(tmp_path / "there")
    key = here.make("", "acme", [Scope.COMPILE], None)
    there.make("", "acme", [Scope.COMPILE], None)
    (tmp_path / "there" / "register.json").write_bytes((tmp_path / "here" / "register.json").read_bytes())
    assert there.verify(key) is None


def test_keys_are_shared_between_processes(tmp_path: Path) -> None:
    operator, service = Keyring(tmp_path), Keyring(tmp_path)
    assert service.register.keys == ()
    key = operator.make("", "acme", [Scope.COMPILE], None)
    found = service.verify(key)
    assert found is not None
    assert found.state(datetime.now(UTC)) == "good"
    operator.revoke(key.id)
    found = service.verify(key)
    assert found is not None
    assert found.state(datetime.now(UTC)) == "revoked"


def test_keys_that_are_made_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    def make(number: int) -> str:
        return Keyring(tmp_path).make(str(number), "acme", [Scope.COMPILE], None).id

    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(make, range(40)))
    assert {key.id for key in Keyring(tmp_path).register.keys} == made
    assert len(made) == 40


def test_a_key_has_an_end(tmp_path: Path) -> None:
    key = Keyring(tmp_path).make("", "acme", [Scope.COMPILE], timedelta(days=1))
    record = Keyring(tmp_path).verify(key)
    assert record is not None
    now = datetime.now(UTC)
    assert record.state(now) == "good"
    assert record.state(now + timedelta(days=2)) == "expired"


def test_a_tenant_whose_name_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="tenant"):
        Keyring(tmp_path).make("", "no spaces", [Scope.COMPILE], None)
    with pytest.raises(RequestError):
        Keyring(tmp_path).set_tenant("", TenantRecord())
    with pytest.raises(NotFoundError, match="unknown"):
        Keyring(tmp_path).revoke("unknown")


@pytest.mark.parametrize(("name", "content"), [("register.json", b"{"), ("secret", b"0123")])
def test_a_damaged_file_lets_nobody_in(tmp_path: Path, name: str, content: bytes) -> None:
    key = Keyring(tmp_path).make("", "acme", [Scope.COMPILE], None)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnavailableError, match=name):
        Keyring(tmp_path).verify(key)


@pytest.mark.parametrize("has", ["keys", "tenants"])
def test_a_secret_that_is_lost_is_not_replaced_while_anything_depends_on_it(tmp_path: Path, has: str) -> None:
    if has == "keys":
        Keyring(tmp_path).make("", "acme", [Scope.COMPILE], None)
    else:
        Keyring(tmp_path).set_tenant("acme", TenantRecord(weight=2))
    whole = (tmp_path / "secret").read_bytes()
    (tmp_path / "secret").unlink()
    left = Keyring(tmp_path)
    for use in (lambda: left.secret, lambda: left.make("", "b", [], None), lambda: Keyring(tmp_path).require_secret()):
        with pytest.raises(UnavailableError, match=r"secret.*[Rr]estore"):
            use()
    with pytest.raises(UnavailableError):
        require_private_address(Settings(identity=tmp_path), "127.0.0.1", None)
    assert not (tmp_path / "secret").exists()
    (tmp_path / "secret").write_bytes(whole)
    assert left.secret.hex() == whole.decode()


def test_an_empty_directory_needs_no_secret(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "identity")
    keyring.require_secret()
    assert not (tmp_path / "identity").exists()
    assert len(keyring.secret) == 32


def test_an_unwritable_directory_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "identity").mkdir()
    keyring = Keyring(tmp_path / "identity")
    (tmp_path / "identity" / "lock").mkdir()
    for use in (
        lambda: keyring.secret,
        lambda: keyring.set_tenant("acme", TenantRecord()),
        lambda: keyring.revoke("x"),
    ):
        with pytest.raises(UnavailableError, match="cannot be written to"):
            use()
