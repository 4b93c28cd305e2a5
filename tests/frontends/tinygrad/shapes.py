"""Movement, indexing, order, and running totals."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .recipe import Array, Recipe, floats, tinygrad, truths, whole

X: Final = floats(4, 6)
CUBE: Final = floats(2, 3, 4)
ROWS: Final = np.array([3, 0, 2], np.int32)


def _filled(x: Any) -> Any:
    y = x.clone()
    y[1:3, ::2] = 5.0
    y[0] = x[3] * 2
    return y + 1


def _assigned(x: Any) -> Any:
    y = x.clone()
    y.assign(y * 2)
    y[:, 1:4].assign(x[:, 0:3])
    return y.flip(0)


def _assigned_by_views(x: Any) -> Any:
    y = x.clone()
    first, second = y[0:2], y[1:4]
    first.assign(first * 2)
    second.assign(second * 3 + first[0])
    return y + 0


def _assigned_turned(x: Any) -> Any:
    y = x.zeros(4, 6).contiguous().realize()
    y.permute(1, 0).flip(0)[1:3].assign(x.permute(1, 0)[:2])
    return y + 1


def _tensor(values: Any) -> Any:
    return tinygrad().Tensor(values)


def _cat(x: Any, y: Any) -> Any:
    return x.cat(y, x, dim=1)


RECIPES: Final[dict[str, Recipe]] = {
    "reshape": Recipe(lambda x: x.reshape(2, -1, 2), (CUBE,)),
    "permute": Recipe(lambda x: x.permute(2, 0, 1), (CUBE,)),
    "transpose": Recipe(lambda x: x.transpose(0, 1), (CUBE,)),
    "expand": Recipe(lambda x: x.reshape(4, 1, 6).expand(4, 3, 6), (X,)),
    "flip": Recipe(lambda x: x.flip((0, 2)), (CUBE,)),
    "pad": Recipe(lambda x: x.pad(((1, 2), (0, 3))), (X,)),
    "pad_value": Recipe(lambda x: x.pad((2, 1), value=-1.5), (X,)),
    "pad_reflect": Recipe(lambda x: x.reshape(1, 4, 6).pad((2, 1), mode="reflect"), (X,)),
    "pad_replicate": Recipe(lambda x: x.reshape(1, 4, 6).pad((2, 1), mode="replicate"), (X,)),
    "slice": Recipe(lambda x: x[1:3, ::-2], (X,)),
    "ellipsis": Recipe(lambda x: x[..., None, 1], (CUBE,)),
    "index_rows": Recipe(lambda x, i: x[i], (X, ROWS)),
    "index_pairs": Recipe(lambda x, i, j: x[i, j], (X, ROWS, np.array([1, 5, 0], np.int32))),
    "index_mixed": Recipe(lambda x, i: x[:, i, None], (CUBE, np.array([2, 0], np.int32))),
    "gather": Recipe(lambda x, i: x.gather(0, i), (X, whole(2, 6, low=0, high=4))),
    "scatter": Recipe(lambda x, i, y: x.scatter(0, i, y), (X, whole(1, 6, low=0, high=4), floats(1, 6))),
    "scatter_reduce": Recipe(
        lambda x, i, y: x.scatter_reduce(0, i, y, "sum"), (X, whole(3, 6, low=0, high=4), floats(3, 6))
    ),
    "one_hot": Recipe(lambda i: i.one_hot(5), (ROWS,)),
    "set_items": Recipe(_filled, (X,)),
    "assign": Recipe(_assigned, (X,)),
    "assign_views": Recipe(_assigned_by_views, (X,)),
    "assign_turned": Recipe(_assigned_turned, (X,)),
    "cat": Recipe(_cat, (X, floats(4, 2))),
    "stack": Recipe(lambda x, y: x.stack(y, dim=1), (X, X + 1)),
    "split": Recipe(lambda x: x.split([1, 3], dim=0), (X,)),
    "chunk": Recipe(lambda x: x.chunk(3, dim=1), (X,)),
    "repeat": Recipe(lambda x: x.repeat(2, 3), (X,)),
    "repeat_interleave": Recipe(lambda x: x.repeat_interleave(2, dim=1), (X,)),
    "roll": Recipe(lambda x: x.roll(2, 1), (X,)),
    "unfold": Recipe(lambda x: x.unfold(1, 3, 2), (X,)),
    "tril": Recipe(lambda x: x.tril(1), (X,)),
    "triu": Recipe(lambda x: x.triu(), (X,)),
    "diagonal": Recipe(lambda x: x[:, :4].diagonal(), (X,)),
    "meshgrid": Recipe(lambda x: list(x[0].meshgrid(x[1])), (X,)),
    "masked_fill": Recipe(lambda x, m: x.masked_fill(m, -1), (X, truths(4, 6))),
    "where_scalar": Recipe(lambda x, m: m.where(x, 0), (X, truths(4, 6))),
    "arange": Recipe(lambda x: x + type(x).arange(1, 13, 2), (X,)),
    "eye": Recipe(lambda x: x[:, :4] + type(x).eye(4), (X,)),
    "linspace": Recipe(lambda x: x * type(x).linspace(0, 1, 6), (X,)),
    "constant": Recipe(lambda x: x + _tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (X,)),
    "sort": Recipe(lambda x: list(x.sort(dim=1)), (X,)),
    "sort_down": Recipe(lambda x: x.sort(dim=0, descending=True)[0], (X,)),
    "argsort": Recipe(lambda x: x.argsort(dim=1), (X,)),
    "topk": Recipe(lambda x: list(x.topk(2, dim=1)), (X,)),
    "cumsum": Recipe(lambda x: x.cumsum(1), (X,)),
    "cumsum_int": Recipe(lambda x: x.cumsum(0), (whole(5, 3),)),
    "cumprod": Recipe(lambda x: x.cumprod(1), (X,)),
    "cummax": Recipe(lambda x: x.cummax(0), (X,)),
    "logcumsumexp": Recipe(lambda x: x.logcumsumexp(1), (X,)),
    "interpolate": Recipe(lambda x: x.interpolate((6, 5)), (floats(1, 2, 4, 3),)),
    "interpolate_nearest": Recipe(lambda x: x.interpolate((6, 5), mode="nearest"), (floats(1, 2, 4, 3),)),
}


def reductions() -> dict[str, Recipe]:
    """Of a whole tensor, of an axis, of several."""
    found: dict[str, Recipe] = {}
    arrays: dict[str, Array] = {"float": CUBE, "int": whole(2, 3, 4)}
    for kind, array in arrays.items():
        for name in ("sum", "max", "min", "mean", "prod", "argmax", "argmin", "any", "all"):
            found[f"{kind}_{name}"] = Recipe(lambda x, name=name: getattr(x, name)(1), (array,))
    for name in ("std", "var", "logsumexp"):
        found[name] = Recipe(lambda x, name=name: getattr(x, name)(axis=2), (CUBE,))
    found["sum_all"] = Recipe(lambda x: x.sum(), (CUBE,))
    found["max_two"] = Recipe(lambda x: x.max((0, 2), keepdim=True), (CUBE,))
    found["half_sum"] = Recipe(lambda x: x.half().sum(0), (CUBE,))
    found["uint8_sum"] = Recipe(lambda x: x.sum(0), (whole(3, 4, low=0, high=255, dtype="uint8"),))
    return found
