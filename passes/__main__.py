"""`python -m tensorkiln_server passes`: run stages of the compiler by name, and print the result of the last.

It is the counterpart of mlir-opt. A development tool: it parses MLIR in its own process, so its input must be trusted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dialect.diagnostics import to_error
from dialect.from_graph import from_graph
from dialect.kiln import new_context
from dialect.mlir import ir
from dialect.verify import verify
from tensorkiln.errors import RequestError, TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target

from . import stage_text
from .back_ends import back_end_of
from .codegen.translate import to_llvm_ir
from .stage import Stage

FROM_GRAPH = "from-graph"
TRANSLATE = "translate"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 if the input is refused, with the reason on standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorkiln_server passes", description="Run stages of the compiler and print."
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("graph", nargs="?", help="a graph, as JSON; - is standard input")
    source.add_argument("--from", dest="module", metavar="MLIR", help="a module that was printed here, to go on with")
    parser.add_argument("--target", default="cpu", help="default: %(default)s")
    last = parser.add_mutually_exclusive_group()
    last.add_argument("--until", default=TRANSLATE, metavar="STAGE", help="the last stage, default: %(default)s")
    last.add_argument("--only", default="", metavar="STAGE,...", help="these alone, whatever has run before")
    parser.add_argument("--no-fusion", action="store_true", help="one op in each kernel")
    parser.add_argument("--no-schedule", action="store_true", help="kernels lowered by the passes of MLIR alone")
    parser.add_argument("--fast-math", action="store_true", help="as the option of a request")
    parser.add_argument("--locations", action="store_true", help="print of which node each op was made")
    given = parser.parse_args(arguments)
    done = FROM_GRAPH
    try:
        schedule = "none" if given.no_schedule else "auto"
        options = CompileOptions(fusion=not given.no_fusion, fast_math=given.fast_math, schedule=schedule)
        pipeline = back_end_of(Target.parse(given.target), options).pipeline
        if given.module is None:
            module = from_graph(Graph.model_validate_json(_text(given.graph)), new_context())
            verify(module, FROM_GRAPH)
        else:
            module, done = _read(_text(given.module))
        only = [_named(pipeline, name) for name in given.only.split(",")] if given.only else None
        for stage in _between(pipeline, done, given.until) if only is None else only:
            module, done = stage.run(module), stage.name
            verify(module, stage.name)
        is_last = given.until == TRANSLATE and not given.only
        print(to_llvm_ir(module) if is_last else stage_text.write(module, done, locations=given.locations), end="")
    except ir.MLIRError as error:
        print(to_error(error, done), file=sys.stderr)
    except (TensorkilnError, OSError) as error:
        print(error, file=sys.stderr)
    else:
        return 0
    return 1


def _text(path: str) -> str:
    return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")


def _read(text: str) -> tuple[ir.Module, str]:
    try:
        return stage_text.read(text, new_context())
    except ir.MLIRError as error:
        raise RequestError(str(error)) from error


def _between(pipeline: Sequence[Stage], done: str, until: str) -> list[Stage]:
    """The stages after `done` up to `until`."""
    if not done:
        raise RequestError(f"The module does not name its last stage ({stage_text.STAGE}); name stages with --only.")
    names = [FROM_GRAPH, *(stage.name for stage in pipeline), TRANSLATE]
    for name in (done, until):
        if name not in names:
            raise RequestError(f"There is no stage {name!r}; there are {', '.join(names)}.")
    if names.index(until) < names.index(done):
        raise RequestError(f"The module is that of {done}, behind {until}.")
    return list(pipeline[names.index(done) : names.index(until)])


def _named(pipeline: Sequence[Stage], name: str) -> Stage:
    for stage in pipeline:
        if stage.name == name:
            return stage
    raise RequestError(f"There is no stage {name!r} to run; there are {', '.join(stage.name for stage in pipeline)}.")


if __name__ == "__main__":
    sys.exit(main())
