"""Methods that wait, of those that are awaited."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ..immediate import iterate, run

I = TypeVar("I")  # noqa: E741
P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Generic[I]):
    """Has the methods of `inner`, whose coroutines never suspend, as plain ones."""

    def __init__(self, inner: I) -> None:
        self._inner = inner


def blocking(method: Callable[Concatenate[I, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Blocking[I], P], T]:
    """The method that waits for what `method` gives."""

    @wraps(method)
    def call(self: Blocking[I], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(self._inner, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    return call


def iterating(
    method: Callable[Concatenate[I, P], AsyncGenerator[T]],
) -> Callable[Concatenate[Blocking[I], P], Generator[T]]:
    """The method that waits for one item of `method` after the other. Its owner lives as long as there may be more."""

    @wraps(method)
    def call(self: Blocking[I], /, *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        yield from iterate(method(self._inner, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    return call
