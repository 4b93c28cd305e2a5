"""What `jax.export` has serialized is read without JAX; what is damaged is refused."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from typing import Any

import flatbuffers
import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import InvalidGraphError, LimitExceededError, TensorkilnError, UnsupportedGraphError
from tensorkiln.expr import add, floordiv, floormod, maximum, mul, symbol
from tensorkiln.frontends.jax import Exported, Tree, load, read_exported
from tensorkiln.frontends.jax.dimensions import parse_dim
from tensorkiln.frontends.jax.exported import MOST_ARGUMENTS
from tensorkiln.frontends.jax.flat import MOST_TABLES, Budget, FlatTable
from tensorkiln.frontends.jax.tree import read_tree
from tests.frontends.jax.functions import EXPORTED, FILES

MUTATIONS = 2_000
WHOLE = ("networks/mlp", "networks/n_twice", "shapes/trees", "random/random_normal")
N, M = symbol("n"), symbol("m")


def content(name: str) -> bytes:
    return (FILES / f"{name}.jax").read_bytes()


def test_a_function_is_what_it_was_exported_as() -> None:
    exported = read_exported(content("shapes/trees"))
    leaf = Tree("leaf")
    pair = Tree("dict", (leaf, Tree("list", (leaf, leaf))), ("a", "b"))
    assert exported.in_tree == Tree("tuple", (Tree("tuple", (pair,)), Tree("dict")))
    assert exported.out_tree == Tree("dict", (Tree("tuple", (leaf, Tree("none"))), leaf), ("pair", "sum"))
    assert [str(aval) for aval in exported.in_avals] == ["float32[3]", "float32[3]", "float32[2]"]
    assert (exported.kept, exported.platforms, exported.devices) == ((0, 1, 2), ("cpu",), 1)
    assert exported.module.startswith(b"ML\xefR")
    assert read_exported(content("shapes/unused")).kept == (0,)
    assert read_exported(content("networks/n_twice")).in_avals[0].shape == ("2*n", "3")


def test_every_file_is_read_and_its_dims_too() -> None:
    for function in EXPORTED:
        exported = read_exported(function.path.read_bytes())
        assert exported.in_tree.leaves == len(exported.in_avals)
        for aval in (*exported.in_avals, *exported.out_avals):
            assert len([parse_dim(dim) for dim in aval.shape]) == len(aval.shape)


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_that_is_cut_short_is_refused_or_lacks_nothing_that_is_read(name: str) -> None:
    whole = content(name)
    exported, refused = read_exported(whole), 0
    for length in range(0, len(whole), max(1, len(whole) // 200)):
        try:
            # At its end lies what is not read: shardings.
            assert read_exported(whole[:length]) == exported
        except (InvalidGraphError, UnsupportedGraphError):
            refused += 1
    assert refused > 150


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_file_is_read_or_refused_within_its_limits(name: str) -> None:
    source, whole = random.Random(name), content(name)
    outcomes: set[type] = set()
    for _ in range(MUTATIONS // len(WHOLE)):
        damaged = bytearray(whole)
        for _ in range(source.choice((1, 2, 8))):
            place = source.randrange(len(damaged))
            damaged[place] = source.choice((0, 1, 255, source.randrange(256)))
        try:
            outcomes.add(type(read_exported(bytes(damaged))))
        except TensorkilnError as error:
            outcomes.add(type(error))
    assert (
        {Exported, InvalidGraphError}
        <= outcomes
        <= {*(Exported, InvalidGraphError, UnsupportedGraphError, LimitExceededError)}
    )


@pytest.mark.parametrize(("levels", "limit"), [(50, "tables"), (100, "table_depth")])
def test_a_tree_that_names_its_parts_again_and_again_is_over_a_limit(levels: int, limit: str) -> None:
    builder: Any = flatbuffers.Builder(1024)
    builder.StartObject(2)
    tree = builder.EndObject()
    for _ in range(levels):
        builder.StartVector(4, 2, 4)
        builder.PrependUOffsetTRelative(tree)
        builder.PrependUOffsetTRelative(tree)
        children = builder.EndVector()
        builder.StartObject(2)
        builder.PrependInt8Slot(0, 2, 0)
        builder.PrependUOffsetTRelativeSlot(1, children, 0)
        tree = builder.EndObject()
    builder.Finish(tree)
    root = FlatTable.root(bytes(builder.Output()))
    assert root.budget == Budget(MOST_TABLES)
    # All its tables would be the same again and again.
    root.budget.left = 5_000
    with pytest.raises(LimitExceededError) as caught:
        read_tree(root)
    assert caught.value.details["limit"] == limit


def test_a_module_that_is_too_large_is_over_a_limit() -> None:
    with pytest.raises(LimitExceededError, match="limit is"):
        read_exported(bytes((64 << 20) + 1))


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("12", 12),
        ("n", N),
        ("2*n", mul(2, N)),
        ("n + -1*m", add(N, mul(-1, M))),
        ("2*n - 1", add(mul(2, N), -1)),
        ("n^2", mul(N, N)),
        ("floordiv(n + 3, 4)", floordiv(add(N, 3), 4)),
        ("mod(n, 2)", floormod(N, 2)),
        ("max(0, n - 2)", maximum(0, add(N, -2))),
    ],
)
def test_a_dim_is_what_jax_writes(text: str, dim: object) -> None:
    assert parse_dim(text) == dim


@pytest.mark.parametrize(
    "text",
    ["", "n n", "n/2", "__import__('os')", "floordiv(n)", "n**99", "n.real", "True", "1.5", "(" * 500, "n" * 1001],
)
def test_an_invalid_dim_is_refused(text: str) -> None:
    with pytest.raises((InvalidGraphError, UnsupportedGraphError)):
        parse_dim(text)


def test_jax_is_not_needed() -> None:
    script = (
        "import sys; sys.modules['jax'] = None; sys.modules['jaxlib'] = None\n"
        "from tensorkiln.frontends.jax import read_exported, jit\n"
        f"print(read_exported(open({str(FILES / 'networks/mlp.jax')!r}, 'rb').read()).name)\n"
        "try: jit(lambda x: x)(1)\n"
        "except Exception as error: print(type(error).__name__)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["_mlp", "RequestError"]


def _with(slot: int, vector: Any) -> bytes:
    """The start of a function for one device that has one field more."""
    builder: Any = flatbuffers.Builder(1024)
    place = vector(builder)
    builder.StartObject(24)
    builder.PrependInt16Slot(6, 1, 0)
    builder.PrependUint16Slot(14, 9, 0)
    builder.PrependUOffsetTRelativeSlot(slot, place, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _same(builder: Any, place: int, count: int) -> int:
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(place)
    return int(builder.EndVector())


def test_a_text_that_is_named_again_and_again_is_over_a_limit() -> None:
    content = _with(9, lambda builder: _same(builder, builder.CreateString("x" * (1 << 20)), 17))
    with pytest.raises(LimitExceededError) as caught:
        read_exported(content)
    assert caught.value.details["limit"] == "text_bytes"


def test_too_many_arguments_are_over_a_limit_before_any_is_read() -> None:
    def indices(builder: Any) -> int:
        return int(builder.CreateNumpyVector(np.zeros(MOST_ARGUMENTS + 1, np.uint32)))

    with pytest.raises(LimitExceededError) as caught:
        read_exported(_with(22, indices))
    assert caught.value.details["limit"] == "arguments"


def test_a_function_for_several_platforms_is_refused() -> None:
    def platforms(builder: Any) -> int:
        names = [builder.CreateString(name) for name in ("cuda", "cpu")]
        builder.StartVector(4, 2, 4)
        for name in names:
            builder.PrependUOffsetTRelative(name)
        return int(builder.EndVector())

    with pytest.raises(UnsupportedGraphError, match=r"for several platforms \(cpu, cuda\); export it for one"):
        read_exported(_with(9, platforms))


def test_a_result_of_another_size_than_the_module_has_is_refused(client: Client) -> None:
    exported = read_exported(content("networks/mlp"))
    (aval,) = exported.out_avals
    wrong = replace(exported, out_avals=(replace(aval, shape=(*aval.shape[:-1], "77")),))
    with pytest.raises(
        InvalidGraphError,
        match=r"result 0 of the module has the shape \(.*\), but the exported function states \(.*77\)",
    ):
        load(wrong, client=client)
