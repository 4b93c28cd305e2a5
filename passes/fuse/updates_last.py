"""Order updates of a value behind the other kernels that read it, so that they can take its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..values import Value
from .assembly import Assembly
from .groups import Group, with_bases
from .windows import Window


def updates_last(
    groups: Sequence[Group], windows: Mapping[Value, Window], assemblies: Mapping[Value, Assembly]
) -> list[Group]:
    """The kernels in an order in which each scatter waits for those that read its initial values, unless they need it.

    The order stays where a value is assembled in the place of an older one, since that depends on it.
    """
    updates = {
        number: with_bases([group.roots[0].operands[2]], windows, assemblies)
        for number, group in enumerate(groups)
        if group.roots[0].kind == "scatter" and len(group.roots[0].operands) > 2
    }
    if not updates or assemblies:
        return list(groups)
    home = {root: number for number, group in enumerate(groups) for root in group.roots}
    read = [with_bases(group.all_reads() | group.all_unread(), windows, assemblies) for group in groups]
    needs = [{home[value] for value in values if value in home} - {number} for number, values in enumerate(read)]
    waits = {number: _readers(number, values, read, needs) for number, values in updates.items()}
    ordered: list[int] = []
    done: set[int] = set()
    left = list(range(len(groups)))
    while left:
        ready = (number for number in left if needs[number] <= done)
        first = next((number for number in ready if waits.get(number, done) <= done), None)
        if first is None:
            # Each update that is ready waits for a kernel that needs another one.
            first = next(number for number in left if needs[number] <= done)
        left.remove(first)
        done.add(first)
        ordered.append(first)
    return [groups[number] for number in ordered]


def _readers(update: int, values: set[Value], read: Sequence[set[Value]], needs: Sequence[set[int]]) -> set[int]:
    """The kernels that read one of the values and do not need the update."""
    behind = {update}
    for number in range(update + 1, len(needs)):
        if not needs[number].isdisjoint(behind):
            behind.add(number)
    return {number for number, others in enumerate(read) if number not in behind and not others.isdisjoint(values)}
