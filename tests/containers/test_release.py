"""What is released was scanned, is signed, and was verified before it has a name.

Builder, scanner and signer are stand-ins: this holds the order and the arguments of the calls, not what the tools do.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.snippets import ROOT, blocks

from .files import DOCKER, stages
from .locks import tool
from .recorded import COMMIT, DIGEST, RECORDED, Recorded

RELEASE = DOCKER / "release"
REPOSITORY, VERSION = "registry.example.org/tensorkiln", "1.2.3"
IDENTITY, ISSUER = "release@example.org", "https://issuer.example.org"
GIVEN = (REPOSITORY, VERSION, IDENTITY, ISSUER)
NAMES = {"api": REPOSITORY, "worker": f"{REPOSITORY}-worker", "cli": f"{REPOSITORY}-cli"}
SHELL = (RELEASE, DOCKER / "run-in-debian-root", ROOT / ".ci" / "run")


@pytest.fixture
def release(tmp_path: Path) -> Recorded:
    return Recorded(RELEASE, tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A release that has come to its end."""
    release = Recorded(RELEASE, tmp_path_factory.mktemp("release"))
    release.run(*GIVEN).check_returncode()
    return release


def steps(release: Recorded) -> list[str]:
    """What was done to images, by the word that says it."""
    kinds = {"build": "buildx build", "scan": "grype", "sign": "cosign sign", "verify": "cosign verify"}
    kinds |= {"tag": "imagetools create", "audit": "pip-audit"}
    lines = (" ".join(call) for call in release.calls)
    return [name for line in lines for name, sign in kinds.items() if sign in line.split("--")[0]]


def test_each_image_is_built_scanned_signed_verified_and_then_tagged(done: Recorded) -> None:
    assert NAMES.keys() <= stages().keys()
    scanned = ["build", "scan", "scan"] * 3
    assert steps(done) == ["audit", "audit", *scanned, *["sign", "verify"] * 3, *["tag"] * 3]
    for target, name in NAMES.items():
        image = f"{name}@{DIGEST}"
        (build,) = [call for call in done.calls if f"type=image,name={name},push=true,push-by-digest=true" in call[-2]]
        assert build[build.index("--target") + 1] == target
        assert f"org.opencontainers.image.version={VERSION}" in build
        assert f"org.opencontainers.image.revision={COMMIT}" in build
        assert {"--provenance=mode=max", "--sbom=true", f"PYTHON=python:3.11-slim@{DIGEST}"} <= set(build)
        assert ["cosign", "sign", "--yes", "--recursive", image] in done.calls
        stated = [f"--certificate-identity={IDENTITY}", f"--certificate-oidc-issuer={ISSUER}"]
        assert ["cosign", "verify", *stated, image] in done.calls
        assert ["docker", "buildx", "imagetools", "create", "--tag", f"{name}:{VERSION}", image] in done.calls
        for platform in ("linux/amd64", "linux/arm64"):
            gate = ["--platform", platform, "--only-fixed", "--fail-on", "high"]
            assert ["grype", f"registry:{image}", *gate] in done.calls


def test_every_lock_is_audited_and_what_cannot_be_looked_up_does_not_pass(done: Recorded) -> None:
    audits = [call for call in done.calls if call[0] == "pip-audit"]
    assert {call[-1] for call in audits} == {str(path.relative_to(ROOT)) for path in DOCKER.glob("lock/*.txt")}
    assert all("--strict" in call and "--require-hashes" in call for call in audits)


@pytest.mark.parametrize(
    ("fails", "left_out"),
    [
        ("pip-audit", {"build", "scan", "sign", "verify", "tag"}),
        ("buildx build", {"scan", "sign", "verify", "tag"}),
        ("grype", {"sign", "verify", "tag"}),
        ("cosign sign", {"verify", "tag"}),
        ("cosign verify", {"tag"}),
    ],
)
def test_a_failed_step_ends_the_release(release: Recorded, fails: str, left_out: set[str]) -> None:
    assert release.run(*GIVEN, fails=fails).returncode != 0
    assert fails in " ".join(release.calls[-1])
    assert not left_out & set(steps(release))


@pytest.mark.parametrize("lacks", [".SBOM", ".Provenance", "linux/arm64"])
def test_an_image_without_its_papers_is_not_signed(release: Recorded, lacks: str) -> None:
    done = release.run(*GIVEN, lacks=lacks)
    assert done.returncode == 2
    assert "has no" in done.stderr
    assert not {"sign", "tag"} & set(steps(release))


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        *((0, text) for text in ("", "tensorkiln", "-x/y", "a.example/b,push=false", "a.example/$(id)", "A.example/b")),
        *((1, text) for text in ("", "-1", "1 2", "1;id", "a" * 129)),
        (2, ""),
        *((3, text) for text in ("", "http://issuer.example.org", "https://a b")),
    ],
)
def test_an_invalid_name_is_refused_before_the_first_step(release: Recorded, place: int, wrong: str) -> None:
    given = [*GIVEN[:place], wrong, *GIVEN[place + 1 :]]
    assert release.run(*given).returncode == 2
    assert release.calls == []


@pytest.mark.parametrize("given", [(), GIVEN[:3], (*GIVEN, "more")])
def test_a_wrong_number_of_arguments_prints_the_usage(release: Recorded, given: tuple[str, ...]) -> None:
    done = release.run(*given)
    assert (done.returncode, release.calls) == (2, [])
    assert "REPOSITORY VERSION IDENTITY ISSUER" in done.stderr


@pytest.mark.parametrize("tool", RECORDED)
def test_a_missing_tool_is_named(release: Recorded, tool: str) -> None:
    release.without(tool)
    done = release.run(*GIVEN)
    assert (done.returncode, done.stderr) == (2, f"docker/release: {tool} is not installed\n")
    assert release.calls == []


def test_only_a_commit_and_only_a_new_version_is_released(release: Recorded) -> None:
    assert "git status" in release.run(*GIVEN, changed=" M service/server/app.py\n").stderr
    assert "is there already" in release.run(*GIVEN, is_there="yes").stderr
    assert "401 Unauthorized" in release.run(*GIVEN, says="401 Unauthorized").stderr
    assert "build" not in steps(release)


def test_the_base_is_by_digest_whoever_names_it(release: Recorded) -> None:
    assert "BASE has no digest" in release.run(*GIVEN, base="python:3.11-slim").stderr
    own = f"mirror.example.org/python:3.11-slim@sha256:{'ab' * 32}"
    ended = release.run(*GIVEN, base=own)
    assert ended.returncode == 0, ended.stderr
    assert f"{REPOSITORY}:{VERSION} is {REPOSITORY}@{DIGEST}" in ended.stdout
    assert [f"PYTHON={own}" in call for call in release.calls if "build" in call] == [True] * 3


def commands(word: str) -> list[list[str]]:
    """Those of the manual that begin with a word."""
    lines = [line.split() for block in blocks(DOCKER / "README.md", "sh") for line in block.text.splitlines()]
    return [line for line in lines if line[0] == word]


def test_the_manual_calls_it_with_what_it_takes_and_verifies_what_it_signs(done: Recorded) -> None:
    assert commands(str(RELEASE.relative_to(ROOT))) == [[str(RELEASE.relative_to(ROOT)), *GIVEN]]
    (verifies,) = commands("cosign")
    assert verifies in [[word.replace(DIGEST, "sha256:…") for word in call] for call in done.calls]


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_the_linter_of_shell_scripts_finds_nothing(script: Path) -> None:
    linter = tool("shellcheck")
    if linter is None:
        pytest.skip("shellcheck is not installed")
    found = subprocess.run([linter, script], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")
