"""`python -m tensorkiln_server trust`: list, rotate and revoke the keys of a service. It answers with JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from service.settings import read_settings
from tensorkiln.errors import UnavailableError
from tensorkiln.trust.verify import CLOCK_SKEW_S

from .keyring import DAY_S, OVERLAP_S, Keyring


def main() -> int:
    """The exit status: 1 when the keys cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorkiln_server trust", description="The keys of a tensorkiln service."
    )
    parser.add_argument("--keys", type=Path, help="directory of the keys (default: KILN_KEYS, or keys in KILN_HOME)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the public keys, as GET /keys gives them")
    rotate = commands.add_parser("rotate", help="create a new key and sign with it from now on")
    rotate.add_argument(
        "--overlap-days",
        type=float,
        default=OVERLAP_S / DAY_S,
        help="days for which the previous key stays valid (default: %(default)g)",
    )
    # One key id in 64 begins with a dash, and must not be parsed as an option.
    ending = "revoke a key immediately; programs that it signed are compiled again"
    revoke = commands.add_parser("revoke", help=ending, prefix_chars="+", add_help=False)
    revoke.add_argument("kid", help="the key's id, as list gives it")
    arguments = parser.parse_args()
    if arguments.command == "revoke" and arguments.kid in ("-h", "--help"):
        revoke.print_help()
        return 0
    settings = read_settings()
    if settings is None:
        return 1
    # Keys of another directory must not be published to the services of the farm.
    shown = None if arguments.keys else settings.public_keys
    keyring = Keyring(arguments.keys or settings.keys, public_directory=shown)
    try:
        if arguments.command == "rotate":
            keyring.rotate(round(arguments.overlap_days * DAY_S))
        elif arguments.command == "revoke":
            keyring.revoke(arguments.kid)
        keys = keyring.published().keys
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    now = time.time()
    listed = [
        {**key.model_dump(mode="json", exclude_none=True), "valid": key.nbf - CLOCK_SKEW_S <= now < key.exp}
        for key in keys
    ]
    print(json.dumps({"keys": listed}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
