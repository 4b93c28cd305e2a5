"""Translation of a program to a model: declare inputs, translate operations, name outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ...build import Builder, Tensor
from ...canonical.one_spelling import one_spelling
from ...errors import UnsupportedGraphError
from ...expr import Expr
from ..composed.complex_numbers import Complex, pairs
from .calling import Calling, Named, Result
from .declare import KEY, declare_inputs, declare_parameters
from .drawing import RANDOM
from .exported import Exported, Output, Ref, Role, TensorType
from .interpret import Interpreter
from .model import TorchModel
from .naming import distinct, leaf_names
from .operators import OPERATORS


def translated(exported: Exported, symbols: Mapping[str, tuple[int, int]]) -> TorchModel:
    """The model of a program whose symbols have these bounds.

    UnsupportedGraphError, which lists all unsupported operations, or names an unsupported input or output;
    InvalidGraphError for operands that do not fit.
    """
    # The user's results come first, so that they keep their names if a buffer has the same name.
    exported = replace(exported, outputs=tuple(sorted(exported.outputs, key=lambda output: bool(output.mutates))))
    builder = Builder(_graph_name(exported.name))
    for name, (low, high) in symbols.items():
        builder.symbol(name, low, high)
    declared = declare_inputs(builder, exported)
    key: Tensor | None = None
    if any(operation.target in RANDOM for operation in exported.operations):
        key = declared.inputs[KEY] = builder.input("uint64", (), KEY)
    declare_parameters(builder, exported, declared)
    interpreter = Interpreter(builder, exported, OPERATORS, declared.values, declared.arrays, key)
    interpreter.run()
    results = [_result(interpreter, output) for output in exported.outputs]
    names = _names(exported, results)
    tensors = [result for result in results if isinstance(result, Tensor)]
    builder.output(*tensors)
    return TorchModel(
        one_spelling(builder.graph()),
        declared.arrays,
        {name: tensor.var for name, tensor in declared.inputs.items()},
        {name: tensor.var for name, tensor in zip([name for name in names if name], tensors, strict=True)},
        _calling(exported, results, names, declared.buffers, symbols),
        declared.state,
    )


def _result(interpreter: Interpreter, output: Output) -> Tensor | Result:
    found = interpreter.resolve(output.value)
    if isinstance(found, Tensor | Expr | bool | int | float | str) or found is None:
        return found
    if isinstance(found, Complex) and interpreter.exported.complex_as_pairs:
        return pairs(found)
    if isinstance(found, Complex):
        name = output.value.name if isinstance(output.value, Ref) else "a result"
        raise UnsupportedGraphError(
            f"the result {name!r} is complex, which no output may be: return torch.view_as_real of it"
        )
    raise UnsupportedGraphError(f"the result {found!r} is neither a tensor nor a number")


def _names(exported: Exported, results: list[Tensor | Result]) -> list[str]:
    """The name of each output that is a tensor, empty for the others."""
    user = [output for output in exported.outputs if not output.mutates]
    given = iter(leaf_names(exported.returned, len(user)))
    wanted = [output.mutates or next(given) for output in exported.outputs]
    marked = iter(distinct([name for name, result in zip(wanted, results, strict=True) if isinstance(result, Tensor)]))
    return [next(marked) if isinstance(result, Tensor) else "" for result in results]


def _calling(
    exported: Exported,
    results: list[Tensor | Result],
    names: list[str],
    states: Mapping[str, str],
    symbols: Mapping[str, tuple[int, int]],
) -> Calling:
    user = [entry.name for entry in exported.inputs if entry.role is Role.USER]
    types = {name: exported.types.get(name) for name in user}
    returned: list[Result] = []
    buffers: dict[str, str] = {}
    changed: dict[str, str] = {}
    for output, result, name in zip(exported.outputs, results, names, strict=True):
        if output.mutates and output.role is Role.USER:
            changed[output.mutates] = name
        elif output.mutates:
            buffers[states[output.mutates]] = name
        else:
            known = exported.types.get(output.value.name) if isinstance(output.value, Ref) else None
            is_complex = isinstance(known, TensorType) and known.is_complex
            returned.append(Named(name, is_complex) if isinstance(result, Tensor) else result)
    return Calling(
        tuple(user),
        {name: known.shape for name, known in types.items() if isinstance(known, TensorType)},
        {name: known for name, known in types.items() if isinstance(known, int | Expr)},
        {name: exported.literals[name] for name in user if name in exported.literals},
        tuple(returned),
        buffers,
        changed,
        exported.arguments,
        exported.argument_names,
        exported.returned,
        symbols,
    )


def _graph_name(name: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9_.]", "_", name)[:64]
    return cleaned if re.match(r"[A-Za-z_]", cleaned) else "torch"
