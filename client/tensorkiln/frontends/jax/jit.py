"""A decorator that compiles a JAX function with tensorkiln and runs it without XLA."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import DType
from ...errors import CallInputError
from ...sdk.asked import NATIVE, OptionsSource, TargetSource
from .complex_arrays import COMPLEX, numpy_of
from .installed import installed
from .keys import Kinds, as_keys, as_words, kinds_of
from .load import model_of
from .model import JaxModel, JaxProgram
from .module import Module
from .statics import Given, Statics
from .traced import traced

if TYPE_CHECKING:
    from ...runtime.cuda import Driver
    from ...sdk.client import Client


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    shapes: Any = None,
    symbols: Mapping[str, tuple[int, int]] | None = None,
    target: TargetSource = NATIVE,
    options: OptionsSource | None = None,
    client: Client | None = None,
    threads: int | None = None,
    device: int | Driver | None = None,
) -> Any:
    """`function`, traced by JAX and compiled once for each signature: shapes, dtypes, tree, static arguments.

    Arguments and results are trees of NumPy or JAX arrays. Results are JAX arrays if an argument is one, else NumPy
    arrays. Static arguments are as for `jax.jit`. `shapes` are the specifications of `jax.export.symbolic_args_specs`
    for the positional arguments, such as `("n, 4", None)`, and `symbols` the inclusive bounds of the sizes in them: all
    sizes within the bounds share one signature.

    If the callable is a pytree, such as a Flax NNX module or `jax.tree_util.Partial(apply, weights)`, its arrays are
    bound as parameters and not sent to the service. So are arrays of 1 KiB or more that a function closes over. They
    are read when a signature is traced; later changes have no effect, as in `jax.jit`.

    `jit(...)` without a function is a decorator. RequestError when JAX is not installed or a static argument does not
    exist; at a call, JAX's own error for a function that it cannot trace, UnsupportedGraphError for an operation
    without a translation, CallInputError and CallBoundsError as for `JaxProgram`.
    """

    def make(wanted: Callable[..., Any]) -> Jitted:
        statics = Statics.of(wanted, static_argnums, static_argnames)
        compile_model = functools.partial(
            JaxModel.compile, target=target, options=options, client=client, threads=threads, device=device
        )
        return Jitted(wanted, statics, shapes, symbols or {}, client, compile_model)

    return make if function is None else make(function)


@dataclass(frozen=True)
class Form:
    """The tree of some leaves, and their kinds (random keys or arrays)."""

    tree: Any
    kinds: Kinds


class Jitted:
    """A function that is compiled at the first call of each signature. Thread-safe: each signature is compiled once."""

    def __init__(
        self,
        function: Callable[..., Any],
        statics: Statics,
        shapes: Any,
        symbols: Mapping[str, tuple[int, int]],
        client: Client | None,
        compile_model: Callable[[JaxModel], JaxProgram],
    ) -> None:
        # `updated=()`: do not copy a module's attributes.
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._statics = statics
        self._shapes = shapes
        self._symbols = symbols
        self._client = client
        self._compile = compile_model
        self._lock = RLock()
        self._programs: dict[Any, tuple[JaxProgram, Form]] = {}
        self._compiled: dict[Any, tuple[JaxProgram, Form]] = {}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Run the function; the first call of a signature compiles it."""
        jax = installed()
        given = self._statics.apart(arguments, named)
        leaves, form = _taken_apart(jax, given)
        avals = [_aval(jax, leaf) for leaf in leaves]
        key = (form, tuple((each.shape, each.dtype, each.weak_type) for each in avals), given.key, _mode(jax))
        found = self._programs.get(key)
        if found is None:
            with self._lock:
                found = self._programs.get(key) or self._made(given, form, avals)
                self._programs[key] = found
        program, results = found
        outputs: Sequence[Any] = program.run([_plain(*each) for each in zip(leaves, avals, strict=True)])
        if any(isinstance(leaf, jax.Array) for leaf in leaves):
            outputs = [jax.numpy.asarray(each) for each in outputs]
        return jax.tree.unflatten(results.tree, as_keys(outputs, results.kinds))

    def model(self, /, *arguments: Any, **named: Any) -> JaxModel:
        """The model that a call with these arguments compiles: its graph, and the arrays that the function closes over.

        The model takes the leaves of the arrays by position. Arguments may be `jax.ShapeDtypeStruct`.
        """
        jax = installed()
        given = self._statics.apart(arguments, named)
        leaves, form = _taken_apart(jax, given)
        return self._model(given, form, self._specs(form, [_aval(jax, leaf) for leaf in leaves]))[0]

    @property
    def signatures(self) -> int:
        """The number of signatures compiled."""
        return len(self._compiled)

    def _made(self, given: Given, form: Form, avals: Sequence[Any]) -> tuple[JaxProgram, Form]:
        specs = self._specs(form, avals)
        key = (
            form,
            tuple((str(each.shape), each.dtype, each.weak_type) for each in specs),
            given.key,
            _mode(installed()),
        )
        if key not in self._compiled:
            model, results = self._model(given, form, specs)
            self._compiled[key] = self._compile(model), results
        return self._compiled[key]

    def _specs(self, form: Form, avals: Sequence[Any]) -> list[Any]:
        """The leaves as `jax.ShapeDtypeStruct`, with the symbolic sizes of `shapes`."""
        jax = installed()
        plain = [jax.ShapeDtypeStruct(each.shape, each.dtype, weak_type=each.weak_type) for each in avals]
        if self._shapes is None:
            return plain
        export = installed("jax.export")
        limits = [
            text for name, (low, high) in self._symbols.items() for text in (f"{name} >= {low}", f"{name} <= {high}")
        ]
        arrays, named = jax.tree.unflatten(form.tree, plain)
        symbolic = export.symbolic_args_specs(arrays, self._shapes, constraints=limits)
        return jax.tree.leaves((symbolic, named))

    def _model(self, given: Given, form: Form, specs: Sequence[Any]) -> tuple[JaxModel, Form]:
        jax = installed()
        results: list[Form] = []
        module = Module.of(self._function)

        def from_leaves(*leaves: Any) -> list[Any]:
            count = len(form.kinds)
            arrays, named = jax.tree.unflatten(form.tree, as_keys(leaves[:count], form.kinds))
            found = module.call(lambda function: given.call(function, arrays, named), leaves[count:])
            flat, tree = jax.tree.flatten(found)
            results.append(Form(tree, kinds_of(flat)))
            return as_words(flat, results[-1].kinds)

        name = getattr(self._function, "__name__", "function")
        exported, parameters = traced(name, from_leaves, specs, module.arrays)
        return model_of(exported, self._symbols, self._client, parameters), results[-1]


def _mode(jax: Any) -> bool:
    """The JAX setting that a trace depends on: whether 64-bit types are enabled."""
    return bool(jax.config.jax_enable_x64)


def _taken_apart(jax: Any, given: Given) -> tuple[list[Any], Form]:
    """The leaves of a call's arrays, random keys as their words, and their form."""
    leaves, tree = jax.tree.flatten((given.arrays, given.named))
    kinds = kinds_of(leaves)
    return as_words(leaves, kinds), Form(tree, kinds)


def _aval(jax: Any, leaf: Any) -> Any:
    """The abstract value of a leaf. CallInputError for a value that is not an array, and for a tracer."""
    if isinstance(leaf, jax.core.Tracer):
        raise CallInputError(
            "a compiled function cannot be transformed or traced; transform the function before it is compiled, "
            "as in jit(jax.grad(f))"
        )
    try:
        return leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    except TypeError:
        raise CallInputError(
            f"a {type(leaf).__name__} is not an array; name the argument in static_argnums or static_argnames if the "
            "function is to be compiled for its value"
        ) from None


def _plain(leaf: Any, aval: Any) -> Any:
    """Convert a leaf for a program, to the dtype of its aval; arrays on a GPU are returned as they are."""
    if hasattr(leaf, "__cuda_array_interface__"):
        return leaf
    name = aval.dtype.name
    return np.asarray(leaf, numpy_of(COMPLEX[name]) if name in COMPLEX else DType(name).numpy)
