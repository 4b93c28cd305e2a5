"""Convert a graph to a module of the kiln dialect.

The module holds one function `@graph` with an argument for each of `input_vars` (with `kiln.parameter` if it is one of
`parameter_vars`) and a result for each of `output_vars`, in order. Its attribute `kiln.symbols` lists `{name, min_val,
max_val}` of all symbols. Every op has the location of its node and the node's index as `kiln.node`. Each node becomes
one op of its name, except:

- a placeholder is its argument;
- a buffer has an op only if its contents are read before any node has defined them; a buffer that only declares where
  another node puts its result, or that is an input, has none;
- a buffer view has another op for every read after a write to its buffer;
- an assign has an op for each update and, if its target is a view, the ops that write it through to the buffer;
- a kernel is the op of the node that it wraps, then one `kiln.kernel` for each of its outputs that is no buffer view;
- a loop is followed by one `kiln.while_result` for each of its outputs, and carries its graphs as attributes;
- a sink, cat or multi has several ops if its operands have more types than one op takes.
"""

from __future__ import annotations

from tensorkiln.graph import Graph
from tensorkiln.nodes import SymVar

from .body import Body
from .kiln import load, new_context
from .locations import node_location
from .mlir import func, ir
from .module import CARRIED, FUNCTION, PARAMETER, SYMBOLS
from .reading import read_node
from .symbolic import symbol_attribute
from .types import tensor_type


def from_graph(graph: Graph, context: ir.Context | None = None, carried: int = 0) -> ir.Module:
    """The module of a graph, in `context` or a new one; the first `carried` inputs are marked as carried by a loop.

    Raises UnsupportedGraphError for what the dialect cannot express: a custom node with operands of too many types, and
    an assignment through a view that reads bool as another dtype.
    """
    context = context or new_context()
    load(context)
    with context, ir.Location.unknown():
        module = ir.Module.create()
        symbols = [SymVar(name=name, min_val=low, max_val=high) for name, (low, high) in graph.symbols.items()]
        inputs = [tensor_type(graph.types[var]) for var in graph.input_vars]
        outputs = [tensor_type(graph.types[var]) for var in graph.output_vars]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp(FUNCTION, (inputs, outputs))
        function.attributes[SYMBOLS] = ir.ArrayAttr.get([symbol_attribute(symbol) for symbol in symbols])
        marked = {PARAMETER: frozenset(graph.parameter_vars), CARRIED: frozenset(graph.input_vars[:carried])}
        if any(marked.values()):
            function.arg_attrs = [
                ir.DictAttr.get({mark: ir.UnitAttr.get() for mark, those in marked.items() if var in those})
                for var in graph.input_vars
            ]
        block = function.add_entry_block(_argument_locations(graph))
        body = Body(graph.types, block)
        for var, argument in zip(graph.input_vars, block.arguments, strict=True):
            body.define(var, argument)
        for index, node in enumerate(graph.nodes):
            body.at(index)
            read_node(node, body)
        func.ReturnOp(body.read_all(graph.output_vars), ip=ir.InsertionPoint(block))
        return module


def _argument_locations(graph: Graph) -> list[ir.Location]:
    """The location where each input is declared: its placeholder or buffer, or unknown."""
    declared = {node.out_var: index for index, node in enumerate(graph.nodes) if node.node in ("placeholder", "buffer")}
    return [node_location(declared[var]) if var in declared else ir.Location.unknown() for var in graph.input_vars]
