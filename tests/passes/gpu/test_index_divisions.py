"""Divisions of indices by the code of a thread."""

from __future__ import annotations

import pytest

from dialect.kiln import new_context
from dialect.mlir import arith, ir
from passes.gpu.frame import ThreadIndexEmitter
from passes.loops.index_space import IndexSpace
from tensorkiln import expr


@pytest.mark.parametrize(("extent", "width"), [(1 << 31, 32), ((1 << 31) + 1, 64)])
def test_an_index_is_divided_in_as_many_bits_as_it_may_have(extent: int, width: int) -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            space = IndexSpace({})
            place = space.add("place", extent)
            emitter = ThreadIndexEmitter(space, {"place": arith.constant(ir.IndexType.get(), 5)})
            emitter(expr.floordiv(place, 3))
        divisions = [op for op in module.body.operations if op.operation.name == "arith.divui"]
    assert len(divisions) == 1
    assert str(divisions[0].operation.results[0].type) == ("i32" if width == 32 else "index")
