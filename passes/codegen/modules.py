"""Modules of LLVM, each in a context that no other thread uses."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager

import llvmlite.binding as llvm

from tensorkiln.errors import DiagnosticError

Parse = Callable[[str], llvm.ModuleRef]


@contextmanager
def parsing() -> Generator[Parse]:
    """A function that parses and verifies LLVM IR text; it raises DiagnosticError for text that LLVM refuses.

    Its modules are in one context, and end with the block, as the context does.
    """
    with ExitStack() as held:
        # The garbage collector could end a context before its modules.
        context = held.enter_context(closing(llvm.create_context()))

        def parse(llvm_ir: str) -> llvm.ModuleRef:
            try:
                module = held.enter_context(closing(llvm.parse_assembly(llvm_ir, context)))
                module.verify()
            except RuntimeError as error:
                raise DiagnosticError(f"LLVM refused the module: {error}", details={"stage": "codegen"}) from error
            return module

        yield parse
