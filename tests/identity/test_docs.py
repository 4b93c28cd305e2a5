"""Every command of the page on identity is run, and prints what the page says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from service.identity.caller import Scope
from service.identity.register import Issuer
from tensorkiln.errors import AuthError, RateLimitedError
from tests.service.server import Server
from tests.snippets import ROOT, blocks, run_commands, shown_commands

PAGE = ROOT / "docs" / "identity.md"
SERVE = "python -m tensorkiln_server --port 8080 &"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_every_command_of_the_page_prints_what_it_says(home: Path) -> None:
    shown = [each for each in shown_commands(PAGE) if each[0] != SERVE]
    # The page's keys are made before its service is asked for anything.
    with Server(home, auth="auto") as server:
        environment = {**os.environ, "KILN_HOME": str(home)}
        run_commands(shown, environment, places={"http://127.0.0.1:8080": server.url}, stderr=subprocess.STDOUT)


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
