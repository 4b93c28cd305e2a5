"""Build hook of the wheel of the server: the folders of the repository become packages inside `tensorkiln_server`.

Their imports of each other are rewritten, one statement at a time and within its line, so that line numbers of
tracebacks are those of the repository. An editable install has nothing rewritten.
"""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE: Final = "tensorkiln_server"
FOLDERS: Final = ("dialect", "stablehlo", "passes", "service")
PACKED: Final = frozenset({".py", ".pyi", ".typed", ".json", ".html", ".js", ".css"})
"""Files of other kinds, and hidden ones, are no part of the server."""


class MoveIntoOnePackage(BuildHookInterface[Any]):
    """Adds the folders to the wheel, rewritten."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files to a folder that lives as long as the build, and name them to the builder in order."""
        if version == "editable":
            return
        self._rewritten = tempfile.TemporaryDirectory()
        for path in sorted(Path(self.root, folder) for folder in FOLDERS):
            for file in sorted(each for each in path.rglob("*") if _is_packed(each.relative_to(self.root))):
                inside = file.relative_to(self.root)
                made = Path(self._rewritten.name, inside)
                made.parent.mkdir(parents=True, exist_ok=True)
                is_code = file.suffix in (".py", ".pyi")
                made.write_bytes(moved(file.read_text("utf-8"), str(inside)).encode() if is_code else file.read_bytes())
                made.chmod(0o644)
                build_data["force_include"][str(made)] = f"{PACKAGE}/{inside.as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        if version != "editable":
            self._rewritten.cleanup()


def _is_packed(path: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in path.parts)
    return path.suffix in PACKED and not is_hidden and path.is_file() and not path.is_symlink()


def moved(source: str, name: str) -> str:
    """`source` with its absolute imports of the folders taken from the package; SyntaxError where that cannot be said.

    `from folder.part import name`, `import folder` and `import folder.part as name` alone mean the same in both places.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_moved(node.module or ""):
            before, after = f"from {node.module} import", f"from {PACKAGE}.{node.module} import"
        elif isinstance(node, ast.Import) and any(_is_moved(alias.name) for alias in node.names):
            before, after = _whole(node, name)
        else:
            continue
        line = lines[node.lineno - 1].encode()
        start, rest = line[: node.col_offset], line[node.col_offset :].decode()
        if not rest.startswith(before):
            raise SyntaxError(f"{name}:{node.lineno}: write `{before}` with single spaces, in one line")
        lines[node.lineno - 1] = start.decode() + after + rest.removeprefix(before)
    return "".join(lines)


def _whole(node: ast.Import, name: str) -> tuple[str, str]:
    """`import folder` and `import folder.part as name`, each as `from … import`, which binds the same name."""
    (alias, *others) = node.names
    above, _, last = alias.name.rpartition(".")
    if others or (above and alias.asname is None):
        raise SyntaxError(f"{name}:{node.lineno}: write `from {above or 'folder'} import …`, which can be moved")
    return f"import {alias.name}", f"from {'.'.join(filter(None, (PACKAGE, above)))} import {last}"


def _is_moved(module: str) -> bool:
    return module.partition(".")[0] in FOLDERS
