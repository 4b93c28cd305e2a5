"""Recognise a contraction: a sum of products of two reads that share only the summed loops and a batch."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from .accesses import Access, linear_access, loads, panel_access
from .body import KernelBody, inner_loops
from .collapse import collapse
from .domain import Domain, Loop, extent_of
from .index_space import IndexSpace, linear_form
from .parts import in_parts
from .scalar_dag import Apply, Interner, Load, Node, conditions_on_indices, depends_on
from .substitution import over

MIN_ROWS = 2
MIN_COLUMNS = 8
MIN_DEPTH = 4
"""Below these extents there is no gain: one row reads the right operand only once anyway, and for less than 8 columns
or 4 terms the loop overhead dominates."""

_SUPPORTED = frozenset({DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.UINT32, DType.INT64, DType.UINT64})


@dataclass(frozen=True, slots=True)
class Contraction:
    """`out[batch, row, column] = sum over depth of left[batch, row, depth] * right[batch, depth, column]`.

    The factors are converted to `dtype` when read, and multiplied and summed in it. If `rounding` is a narrower float,
    every product is rounded to it, since the graph multiplies in it. `run` is the number of flattened columns that are
    contiguous in the result; 0 if all of them are.
    """

    dtype: DType
    rounding: DType | None
    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    depth: tuple[Loop, ...]
    left: Access
    right: Access
    run: int = 0


def contraction_of(body: KernelBody) -> tuple[KernelBody, Contraction] | None:
    """The collapsed body and its contraction, if its first stage is one and at most one map of the result follows.

    Several maps at a point are one stage: they pass values in registers.
    """
    if body.stages[0].combine is None or len(body.rows) != len(body.stages[0].domain.parallel):
        return None
    maps = body.stages[1:]
    if len(maps) > 1 or any(stage.combine is not None or stage.domain.loops != body.rows for stage in maps):
        return None
    if _factors(body.stages[0].combine, body.stages[0].elements[0]) is None:
        return None
    body = collapse(body)
    if (parts := _matched(body)) is None:
        body = body.once(_rows_in_parts)
        parts = _matched(body)
    return None if parts is None else (body, parts)


def _matched(body: KernelBody) -> Contraction | None:
    stage = body.stages[0]
    return match_contraction(stage.domain, stage.combine, stage.elements[0], body.nodes, body.space, body.in_panels)


def _rows_in_parts(body: KernelBody) -> KernelBody:
    """The body with rows in parts, where the factors divide their indices: the windows of an image, for example."""
    stage = body.stages[0]
    read = [load.address for load in loads(stage.elements, body.nodes) if load.operand not in body.in_panels]
    parts = in_parts(body.rows, read, body.space)
    if parts is None:
        return body
    stages = tuple(over(body, stage, (*parts.loops, *inner_loops(body, stage)), parts.values) for stage in body.stages)
    return collapse(replace(body, rows=parts.loops, stages=stages))


def match_contraction(
    domain: Domain,
    combine: str | None,
    element: Node,
    nodes: Interner,
    space: IndexSpace,
    in_panels: Container[int] = (),
) -> Contraction | None:
    """The contraction of a stage, or None if it is none or is too small.

    The operands `in_panels` were packed for it.
    """
    factors = _factors(combine, element)
    if factors is None:
        return None
    first, second, multiplied = factors
    names = [loop.name for loop in domain.loops]
    accesses = [
        panel_access(load, names) if load.operand in in_panels else linear_access(load, nodes, names)
        for load in (first, second)
    ]
    # Conditions that are linear in the loops split into a part per loop.
    conditions = (*first.conditions, *second.conditions)
    if not all(isinstance(each, int | expr.Expr) and linear_form(each, names) is not None for each in conditions):
        return None
    if accesses[0] is None or accesses[1] is None:
        return None
    rounding = multiplied if multiplied is not element.dtype else None
    return _oriented(domain, accesses[0], accesses[1], space, element.dtype, rounding)


def multiplies_matrix(domain: Domain, rows: int, combine: str | None, element: Node, nodes: Interner) -> bool:
    """Whether a stage multiplies a row with a matrix, if the first `rows` loops are those of rows: it sums products of
    which a parallel loop inside the row changes one factor. The windows of a convolution are no matrix: they overlap.
    """
    product = _without_rounding(element)
    if combine != "sum" or not isinstance(product, Apply):
        return False
    if (product.op, *product.attributes[:1]) != ("binop", "mul"):
        return False

    def changed(loop: Loop) -> int:
        return sum(depends_on(factor, loop.name, nodes) for factor in product.args)

    across = any(changed(loop) == 1 for loop in domain.parallel[rows:])
    is_product = across and all(changed(loop) == 2 for loop in domain.reduction)
    return is_product and not any(_overlaps(load, domain) for load in loads(product.args, nodes))


def _overlaps(load: Load, domain: Domain) -> bool:
    """Whether a parallel loop steps to an element that another turn of a reduction loop reads, too."""
    form = linear_form(load.address, [loop.name for loop in domain.loops])
    if form is None:
        return False
    steps = dict(zip(domain.loops, form[1], strict=True))
    return any(
        _is_stepped(steps[one], steps[other], other.extent) for one in domain.parallel for other in domain.reduction
    )


def _is_stepped(step: Dim, inner: Dim, extent: Dim) -> bool:
    """Whether `step` is a multiple of `inner` below `extent` times it."""
    if step == inner:
        return step != 0 and extent != 1
    if not (isinstance(step, int) and isinstance(inner, int) and isinstance(extent, int)) or inner == 0:
        return False
    return step % inner == 0 and 0 < step // inner < extent


def _factors(combine: str | None, element: Node) -> tuple[Load, Load, DType] | None:
    """The two reads whose products are summed, and the dtype of the product; None for anything else."""
    product = _without_rounding(element)
    if combine != "sum" or element.dtype not in _SUPPORTED or not isinstance(product, Apply):
        return None
    if product.op != "binop" or product.attributes[0] != "mul":
        return None
    first, second = (_read(factor) for factor in product.args)
    return None if first is None or second is None else (first, second, product.dtype)


def _without_rounding(element: Node) -> Node:
    """The product before its rounding to a narrow float, or the element itself."""
    if isinstance(element, Apply) and element.op == "cast" and element.dtype is DType.FLOAT32:
        (inner,) = element.args
        # float32 holds the product of two 16-bit floats exactly, so it is rounded once either way.
        if inner.dtype.is_half:
            return inner
    return element


def _read(factor: Node) -> Load | None:
    """The load of a factor, directly or behind an exact conversion."""
    if isinstance(factor, Apply) and factor.op == "cast":
        (inner,) = factor.args
        return inner if isinstance(inner, Load) and is_exact_widening(inner.dtype, factor.dtype) else None
    return factor if isinstance(factor, Load) else None


def is_exact_widening(source: DType, target: DType) -> bool:
    """Whether `target` is wider and holds every value of `source`; bool is excluded, and handled otherwise."""
    if source.is_bool or target not in _SUPPORTED or source.itemsize >= target.itemsize:
        return False
    source = source.wide
    if source.is_float or target.is_float:
        return target.is_float
    return target.is_signed or not source.is_signed


def _uses(access: Access, domain: Domain) -> list[bool]:
    """Which loops the access depends on, by its address or by its conditions."""
    conditioned = frozenset[str]().union(*map(expr.free_symbols, conditions_on_indices(access.load)))
    return [stride != 0 or loop.name in conditioned for stride, loop in zip(access.strides, domain.loops, strict=True)]


def _oriented(
    domain: Domain, first: Access, second: Access, space: IndexSpace, dtype: DType, rounding: DType | None
) -> Contraction | None:
    in_first, in_second = _uses(first, domain), _uses(second, domain)
    batch: list[Loop] = []
    only_first: list[Loop] = []
    only_second: list[Loop] = []
    depth: list[Loop] = []
    for loop, one, two in zip(domain.loops, in_first, in_second, strict=True):
        if loop.is_reduction:
            if not (one and two):
                return None
            depth.append(loop)
        elif one and two:
            batch.append(loop)
        elif one:
            only_first.append(loop)
        elif two:
            only_second.append(loop)
        else:
            return None
    # The columns are the innermost loops of the result, so that it is stored by whole vectors.
    last = domain.parallel[-1] if domain.parallel else None
    if last in only_first:
        first, second, only_first, only_second = second, first, only_second, only_first
    limits = ((only_first, MIN_ROWS), (only_second, MIN_COLUMNS), (depth, MIN_DEPTH))
    if not all(loops and space.largest(extent_of(loops)) >= least for loops, least in limits):
        return None
    loops = (tuple(batch), tuple(only_first), tuple(only_second), tuple(depth))
    return Contraction(dtype, rounding, *loops, first, second)
