"""Every command of the page on identity is run, and prints what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.identity.caller import Scope
from service.identity.issuer import Issuer
from tensorkiln.errors import AuthError, RateLimitedError
from tests.service.server import Server
from tests.snippets import ANYTHING, ROOT, blocks

PAGE = ROOT / "docs" / "identity.md"
SERVE = "python -m tensorkiln_server --port 8080 &"


def commands() -> list[tuple[str, str]]:
    """The commands of the page, each with what it is said to print."""
    text = "".join(block.text for block in blocks(PAGE, "console"))
    return [
        (part.partition("\n")[0], part.partition("\n")[2].rstrip("\n"))
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]
    ]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_every_command_of_the_page_prints_what_it_says(home: Path) -> None:
    mark = "--- next ---"
    words = [command for command, _ in commands() if command != SERVE]
    stated = [printed for command, printed in commands() if command != SERVE]
    # The page's keys are made before its service is asked for anything.
    with Server(home, auth="auto") as server:
        script = "\n".join(f"{command}\necho; echo '{mark}'" for command in words).replace(
            "http://127.0.0.1:8080", server.url
        )
        environment = {**os.environ, "KILN_HOME": str(home)}
        done = subprocess.run(
            ["bash", "-c", f'python() {{ {sys.executable} -W error "$@"; }}\n{script}'],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
    printed = [part.strip("\n") for part in done.stdout.split(mark)[:-1]]
    assert len(printed) == len(words), done.stdout
    for command, expected, actual in zip(words, stated, printed, strict=True):
        pattern = ".*".join(re.escape(part) for part in expected.split(ANYTHING))
        assert re.fullmatch(pattern, actual, re.DOTALL), f"$ {command}\n{actual}"


def test_the_issuer_of_the_page_can_be_configured() -> None:
    (block,) = blocks(PAGE, "json", "oidc")
    (issuer,) = [Issuer.model_validate(each) for each in json.loads(block.text)]
    claims = {"repository_owner": "acme", "ref": "refs/heads/main", "event_name": "push"}
    rule = issuer.rule_for(claims)
    assert rule is not None
    assert issuer.cap(claims, rule.scopes) == {Scope.COMPILE, Scope.CACHE_READ, Scope.CACHE_WRITE}
    assert issuer.cap({**claims, "event_name": "pull_request"}, rule.scopes) == {Scope.CACHE_READ}
    branch = issuer.rule_for({**claims, "ref": "refs/heads/try"})
    assert branch is not None
    assert branch.scopes == {Scope.CACHE_READ}


def test_the_page_names_every_code_and_every_scope() -> None:
    text = PAGE.read_text("utf-8")
    for error in (*AuthError.__subclasses__(), RateLimitedError):
        assert f"| `{error.code}` | {error.status} |" in text
    for scope in Scope:
        assert f"| `{scope}` |" in text
