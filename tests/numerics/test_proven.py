"""Graphs of every node kind, whose accesses are all proven to stay in their memory, and of small networks.

Of these all stores are proven, and nearly all loads: see docs/checking.md for the reasons that some are not.
"""

from __future__ import annotations

import pytest

from .cases import KINDS, dtypes_of
from .proven import TARGETS, accesses_of, graphs, networks


@pytest.mark.parametrize("target", TARGETS)
def test_the_accesses_of_a_graph_of_each_node_kind_are_proven(target: str) -> None:
    stores = 0
    for number, kind in enumerate(KINDS):
        dtypes = dtypes_of(kind)
        for graph in graphs(kind, dtypes[number % len(dtypes) :][:1], 1):
            found = accesses_of(graph, target)
            stores += sum(access.is_store for access in found)
            assert [str(access) for access in found if not access.is_proven] == [], graph.model_dump_json()
    assert stores > len(KINDS)


@pytest.mark.parametrize("target", TARGETS)
def test_the_stores_and_nearly_all_loads_of_a_graph_of_each_small_network_are_proven(target: str) -> None:
    found = [access for graph in networks(1) for access in accesses_of(graph, target)]
    unproven = [access for access in found if not access.is_proven]
    assert not any(access.is_store for access in unproven), [str(access) for access in unproven]
    assert len(unproven) <= 0.02 * len(found), [str(access) for access in unproven]
