"""`python -m tensorkiln_server identity`: make, list and revoke API keys, and set the limits of tenants."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field

from service.settings import argument, read_settings
from tensorkiln.errors import TensorkilnError

from .caller import Scope
from .keyring import Keyring
from .register import CpuS, InFlight, TenantRecord, Weight

_Days = Annotated[float, Field(gt=0, lt=1e6)]
DEFAULT_SCOPES = (Scope.COMPILE, Scope.CACHE_READ, Scope.CACHE_WRITE)


def _make(keyring: Keyring, arguments: argparse.Namespace) -> list[str]:
    lifetime = timedelta(days=arguments.days) if arguments.days is not None else None
    scopes = [Scope(scope) for scope in arguments.scope or DEFAULT_SCOPES]
    key = keyring.make(arguments.name, arguments.tenant, scopes, lifetime)
    print("Keep this key; it is shown this once.", file=sys.stderr)
    return [key.text]


def _keys(keyring: Keyring, arguments: argparse.Namespace) -> list[str]:
    now = datetime.now(UTC)
    rows = [("ID", "ENDS IN", "TENANT", "STATE", "EXPIRES", "SCOPES", "NAME")]
    for key in keyring.register.keys:
        expires = key.expires.date().isoformat() if key.expires is not None else "never"
        scopes = ",".join(sorted(key.scopes))
        rows.append((key.id, key.last4, key.tenant, key.state(now), expires, scopes, key.name))
    return _table(rows)


def _revoke(keyring: Keyring, arguments: argparse.Namespace) -> list[str]:
    key = keyring.revoke(arguments.id)
    return [f"The key {key.id} of {key.tenant} is revoked."]


def _tenant(keyring: Keyring, arguments: argparse.Namespace) -> list[str]:
    stated = {name: getattr(arguments, name) for name in TenantRecord.model_fields}
    changes = {name: value for name, value in stated.items() if value is not None}
    if changes:
        record = TenantRecord.model_validate({**dict(keyring.tenant(arguments.tenant)), **changes})
        keyring.set_tenant(arguments.tenant, record)
    record = keyring.tenant(arguments.tenant)
    rows = [("TENANT", "WEIGHT", "STORE", "IN FLIGHT", "CPU S")]
    in_flight, cpu_s = ("default" if limit is None else f"{limit:g}" for limit in (record.in_flight, record.cpu_s))
    rows.append((arguments.tenant, f"{record.weight:g}", "shared" if record.shared else "own", in_flight, cpu_s))
    return _table(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    settings = read_settings()
    if settings is None:
        return 1
    try:
        lines = parsed.command(Keyring(settings.identity), parsed)
    except TensorkilnError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tensorkiln_server identity", description="API keys and tenants.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    make = commands.add_parser("make", help="create a key and print it once")
    make.add_argument("--tenant", required=True, help="the tenant to which the key belongs")
    make.add_argument("--name", default="", help="the purpose of the key, shown by list")
    make.add_argument("--days", type=argument(_Days), help="days until the key expires (default: never)")
    make.add_argument(
        "--scope",
        action="append",
        choices=[str(scope) for scope in Scope],
        help=f"a permission; repeatable (default: {', '.join(DEFAULT_SCOPES)})",
    )
    make.set_defaults(command=_make)

    commands.add_parser("list", help="list the keys").set_defaults(command=_keys)

    revoke = commands.add_parser("revoke", help="revoke a key, from the next request on")
    revoke.add_argument("id", help="the key's id: the part between kiln_ and the next _")
    revoke.set_defaults(command=_revoke)

    tenant = commands.add_parser("tenant", help="show or change the limits of a tenant")
    tenant.add_argument("tenant")
    tenant.add_argument("--weight", type=argument(Weight), help="its share of a busy machine, beside other tenants")
    tenant.add_argument(
        "--shared",
        action=argparse.BooleanOptionalAction,
        help="use the common part of the store, or its own",
    )
    tenant.add_argument("--in-flight", type=argument(InFlight), help="concurrent requests; 0: no limit")
    tenant.add_argument("--cpu-s", type=argument(CpuS), help="processor seconds in a window; 0: no limit")
    tenant.set_defaults(command=_tenant)
    return parser


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


if __name__ == "__main__":
    sys.exit(main())
