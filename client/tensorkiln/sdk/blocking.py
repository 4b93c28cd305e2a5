"""Blocking methods made from coroutines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ..immediate import iterate, run

I = TypeVar("I")  # noqa: E741
P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Generic[I]):
    """Base of classes with blocking versions of the methods of `inner`, whose coroutines must never suspend."""

    def __init__(self, inner: I) -> None:
        self._inner = inner


def blocking(method: Callable[Concatenate[I, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Blocking[I], P], T]:
    """A blocking version of the coroutine method `method`."""

    @wraps(method)
    def call(self: Blocking[I], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(self._inner, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    return call


def iterating(
    method: Callable[Concatenate[I, P], AsyncGenerator[T]],
) -> Callable[Concatenate[Blocking[I], P], Generator[T]]:
    """A blocking version of the generator method `method`. The generator keeps its owner alive."""

    @wraps(method)
    def call(self: Blocking[I], /, *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        yield from iterate(method(self._inner, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    return call
