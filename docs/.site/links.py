"""The manual as a site, a hook of MkDocs: its navigation is `docs/index.md`, and pages outside `docs/` are in it."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
OUTSIDE: Final = {"docker/README.md": "docker.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository, and their names in the site."""
_PROJECT: Final = {"Images": "docker/README.md", "Contributing": "CONTRIBUTING.md", "Changes": "CHANGELOG.md"}
_LINK: Final = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


_FENCE: Final = re.compile(r"^( *```\w+) [\w-]+$", re.MULTILINE)
_GROUP: Final = re.compile(r"\*\*(.+)\*\*")
_ENTRY: Final = re.compile(r"(?:-|\d+\.) \[([^\]]+)\]\(([\w/.-]+\.md)\)")


def on_config(config: Any) -> Any:
    """The navigation: the groups of the index, and the pages of them."""
    groups: dict[str, list[dict[str, str]]] = {}
    for line in (ROOT / "docs" / "index.md").read_text("utf-8").splitlines():
        if group := _GROUP.fullmatch(line):
            groups[group[1]] = []
        elif entry := _ENTRY.match(line):
            groups[[*groups][-1]].append({entry[1].replace("`", ""): entry[2]})
    project = [{title: OUTSIDE[source]} for title, source in _PROJECT.items()]
    config["nav"] = ["index.md", *({title: pages} for title, pages in groups.items()), {"The project": project}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside."""
    for source, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn each link into one within the site; what the site does not have is named, and not linked."""
    name = page.file.src_uri
    inside = {place: source for source, place in OUTSIDE.items()}
    source = inside.get(name, f"docs/{name}")

    def turned(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        if target in OUTSIDE:
            target = f"docs/{OUTSIDE[target]}"
        if not target.startswith("docs/"):
            return found[1]
        return posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(name) or ".")

    # The word after the language of an example is for the tests.
    markdown = _LINK.sub(turned, _FENCE.sub(r"\1", markdown))
    return _unlinked(markdown, source, files)


def _unlinked(markdown: str, source: str, files: Any) -> str:
    """Links to folders and files of the repository become plain text: the site has no copy of them."""

    def plain(found: re.Match[str]) -> str:
        path = found[2].partition("#")[0]
        is_known = not path or files.get_file_from_path(posixpath.normpath(path)) is not None
        is_in_repository = (ROOT / posixpath.dirname(source) / path).exists()
        return found[0] if is_known or "://" in found[2] or not is_in_repository else found[1]

    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", plain, markdown)
