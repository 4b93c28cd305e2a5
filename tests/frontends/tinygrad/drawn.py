"""Random numbers, which tinygrad makes of a seed and a counter by Threefry, and functions of `tinygrad.function`."""

from __future__ import annotations

from typing import Any, Final

from .recipe import Recipe, floats, tinygrad

X: Final = floats(4, 6)


def _seeded(draw: Any) -> Any:
    def run(x: Any) -> Any:
        type(x).manual_seed(7)
        return draw(x)

    return run


def _twice(x: Any) -> Any:
    return [x.rand_like(), x.rand_like()]


def _dropped(x: Any) -> Any:
    with tinygrad().Context(TRAINING=1):
        return x.dropout(0.3)


def _called(x: Any) -> Any:
    function = tinygrad().function
    inner = function(lambda a, b: (a * b).sin())
    outer = function(lambda a: (inner(a, a + 1), a.sum(0)))
    return list(outer(x))


RECIPES: Final = {
    "rand": Recipe(_seeded(lambda x: x + type(x).rand(4, 6)), (X,)),
    "rand_twice": Recipe(_seeded(_twice), (X,)),
    "randn": Recipe(_seeded(lambda x: x.randn_like()), (X,)),
    "randint": Recipe(_seeded(lambda x: type(x).randint(9, low=-3, high=12) + x[0, 0].int()), (X,)),
    "uniform": Recipe(_seeded(lambda x: type(x).uniform(5, low=-1, high=1) * x[0, 0]), (X,)),
    "rand_half": Recipe(_seeded(lambda x: x.half().rand_like()), (X,)),
    "dropout": Recipe(_seeded(_dropped), (X,)),
    "permutation": Recipe(_seeded(lambda x: type(x).randperm(6) + x[0].int()), (X,)),
    "function": Recipe(_called, (X,)),
}
