"""Which process runs which tests: each has files of its own, and one of them first those of services.

Tests of one file share what is compiled, drawn or started for them. Those of services wait; beside them others compute.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sized
from typing import Final, TypeAlias

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

WAITING: Final = ("containers", "farm", "faults", "identity", "observe", "sandbox", "sdk", "service", "trust")
"""The folders of tests that wait more than they compute: for processes to come and go, and for deadlines."""

FRESH: Final = "tests/simt/"
"""Tests that come first: what they run on stacks of its own has ended processes that had run thousands before."""

File: TypeAlias = "deque[str]"


class Distribution(LoadGroupScheduling):
    """Hands out what belongs to one xdist_group, or one test, at a time.

    A process stays with a file while there is something of it. When every file is begun, it helps with the one of which
    there is most: the last file is shared, however long it takes.
    """

    _files: list[File] | None = None
    _begun: dict[WorkerController, File]
    _indices: dict[str, int] | None = None

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a unit that is done: what is left is counted after every test."""
        assigned = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(assigned[scope].values()):
            del assigned[scope]

    def remove_node(self, node: WorkerController) -> str | None:
        """What a process that died had left is handed out again."""
        self._files = None
        return super().remove_node(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self._files is None:
            self._files, self._begun = files_of(self.workqueue), {}
        scope = self._file(node, self._files).popleft()
        unit = self.assigned_work[node][scope] = self.workqueue.pop(scope)
        if self._indices is None:
            # The collections of all processes are equal.
            self._indices = {test: index for index, test in enumerate(self.registered_collections[node])}
        node.send_runtest_some([self._indices[test] for test, done in unit.items() if not done])

    def _file(self, node: WorkerController, files: list[File]) -> File:
        """The file that this process takes its next unit from."""
        own = self._begun.get(node)
        if not own:
            waits = node is next(iter(self.assigned_work))
            # Most are over before the end, and most that are fresh come first: neither is looked at again and again.
            files[:] = filter(None, files)
            begun = {id(file) for file in self._begun.values()}
            fresh = [file for file in files if id(file) not in begun]
            preferred = (file for file in fresh if waiting(next(iter(self.workqueue[file[0]]))) == waits)
            own = next(preferred, None) or next(iter(fresh), None) or max(files, key=len)
            self._begun[node] = own
        return own


def waiting(test: str) -> bool:
    """Whether this is one of the tests that wait."""
    return test.startswith(tuple(f"tests/{folder}/" for folder in WAITING))


def files_of(units: Mapping[str, Sized]) -> list[File]:
    """The units by file, in the order of their first ones; a group is by itself, as its tests are of several files.

    Groups come first, the largest before: one process does all of a group, and nobody can help it at the end. Then come
    those for fresh processes.
    """
    files: dict[str, File] = {}
    for scope in units:
        files.setdefault(scope.split("::", 1)[0], deque()).append(scope)
    groups = [file for name, file in files.items() if name in units]
    groups.sort(key=lambda group: len(units[group[0]]), reverse=True)
    others = [(name, file) for name, file in files.items() if name not in units]
    others.sort(key=lambda other: not other[0].startswith(FRESH))
    return [*groups, *(file for _, file in others)]
