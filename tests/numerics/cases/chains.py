"""Whole little networks: what fusion, scheduling and bufferization have to get right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from tensorkiln.dtypes import DType

from . import contractions, normalizations, pipelines, programs
from .sketch import Case, Sketch

Network = Callable[[Sketch, DType], None]


@dataclass(frozen=True, slots=True)
class Chain:
    """A network and the dtypes it makes sense for."""

    dtypes: tuple[DType, ...]
    draw: Network


CHAINS: dict[str, Chain] = {
    name: Chain(dtypes, draw)
    for table in (pipelines.NETWORKS, contractions.NETWORKS, normalizations.NETWORKS, programs.NETWORKS)
    for name, (dtypes, draw) in table.items()
}
"""The networks by name."""


@cache
@st.composite
def chain_for(draw: st.DrawFn, name: str, dtype: DType, symbolic: bool) -> Case:
    """A case of the network `name`; `dtype` is one of `CHAINS[name].dtypes`."""
    sketch = Sketch(draw, symbolic)
    CHAINS[name].draw(sketch, dtype)
    return sketch.case()


@st.composite
def chains(draw: st.DrawFn) -> Case:
    """A case of any network on any of its dtypes, static or symbolic."""
    name = draw(st.sampled_from(sorted(CHAINS)))
    dtype = draw(st.sampled_from(CHAINS[name].dtypes))
    return draw(chain_for(name, dtype, draw(st.booleans())))
