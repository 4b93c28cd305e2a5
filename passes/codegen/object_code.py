"""Compile LLVM IR text to a relocatable object for a CPU."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import llvmlite.binding as llvm

from tensorkiln.elf import read_object
from tensorkiln.errors import DiagnosticError
from tensorkiln.object_rules import foreign_symbols, object_problems
from tensorkiln.target import Target

from .function_attributes import attach
from .llvm_targets import initialize
from .machine import Machine, machine_of
from .modules import Parse, parsing
from .vectorised import vectorised

NARROW_ACCESSES = frozenset({"llvm.masked.load.v8i8.p0", "llvm.masked.store.v8i8.p0"})


def emit(llvm_ir: str, target: Target) -> bytes:
    """Position-independent object code of an optimised module; equal arguments give equal bytes on any machine.

    Raises DiagnosticError if LLVM rejects the module or the target; if the object needs a symbol that the loading
    process may lack (a call into the maths library or the compiler's runtime); or if it has parts that the SDK does not
    load (`tensorkiln.object_rules`).
    """
    with _optimised(llvm_ir, target) as (machine, handle, module):
        code = bytes(handle.emit_object(module))
    only_kernels(code, machine.triple)
    return code


def only_kernels(code: bytes, triple: str) -> None:
    """Check that the SDK will load an object: raises DiagnosticError with every symbol or part that it would reject."""
    try:
        read = read_object(code)
        missing, problems = foreign_symbols(read), object_problems(read)
    except ValueError as error:
        raise DiagnosticError(f"the code for {triple} cannot be read: {error}", details={"stage": "codegen"}) from error
    if missing:
        raise DiagnosticError(
            f"the code for {triple} calls {', '.join(missing)}, which a loader may not find",
            details={"stage": "codegen", "symbols": missing},
        )
    if problems:
        raise DiagnosticError(
            f"the code for {triple} has a part that no kernel has: {'; '.join(problems)}",
            details={"stage": "codegen", "problems": problems},
        )


def assembly(llvm_ir: str, target: Target) -> str:
    """The same code as assembler text, for dumps and for reading. Raises DiagnosticError as `emit` does for bad IR."""
    with _optimised(llvm_ir, target) as (_, handle, module):
        return str(handle.emit_assembly(module))


def optimised_ir(llvm_ir: str, target: Target) -> str:
    """The module after LLVM's optimiser, as text, for dumps. Raises DiagnosticError as `emit` does for bad IR."""
    with _optimised(llvm_ir, target) as (_, _, module):
        return str(module)


def _target_machine(machine: Machine) -> llvm.TargetMachine:
    initialize()
    try:
        back_end = llvm.Target.from_triple(machine.triple)
        return back_end.create_target_machine(
            cpu=machine.isa_cpu, features=machine.features, opt=3, reloc="pic", codemodel="small"
        )
    except RuntimeError as error:
        raise DiagnosticError(
            f"no code generator for {machine.triple}: {error}", details={"stage": "codegen"}
        ) from error


@contextmanager
def _optimised(llvm_ir: str, target: Target) -> Generator[tuple[Machine, llvm.TargetMachine, llvm.ModuleRef]]:
    """The module until the end of the block."""
    machine = machine_of(target)
    handle = _target_machine(machine)
    with parsing() as parse:
        module = parse(attach(llvm_ir, machine.function_attributes))
        is_mixed = _optimise(module, vectorised(llvm_ir), machine, handle)
        yield machine, handle, _mended(module, machine, is_mixed, parse)


def _optimise(module: llvm.ModuleRef, names: frozenset[str], machine: Machine, handle: llvm.TargetMachine) -> bool:
    """Optimise the module, with few passes for the functions of these names. Returns whether only some have them."""
    module.triple = machine.triple
    module.data_layout = str(handle.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.loop_interleaving = True
    options.loop_unrolling = False
    # It costs compile time, and gains on straight-line code only.
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(handle, options)
    _between_functions().run(module, builder)
    few = _few_passes()
    defined = [function for function in module.functions if not function.is_declaration]
    done = [function for function in defined if function.name in names]
    for function in done:
        few.run(function, builder)
    is_mixed = 0 < len(done) < len(defined)
    if len(done) < len(defined):
        # The pipeline skips functions with this attribute.
        for function in done:
            function.add_function_attribute("noinline")
            function.add_function_attribute("optnone")
        builder.getModulePassManager().run(module, builder)
    return is_mixed


def _few_passes() -> llvm.FunctionPassManager:
    """The passes for functions that are `vectorised`: loops as the code generator expects them, and folded sizes."""
    manager = llvm.create_new_function_pass_manager()
    manager.add_simplify_cfg_pass()
    manager.add_loop_simplify_pass()
    manager.add_lcssa_pass()
    manager.add_loop_rotate_pass()
    manager.add_instruction_combine_pass()
    manager.add_simplify_cfg_pass()
    return manager


def _between_functions() -> llvm.ModulePassManager:
    """Inlines `alwaysinline` functions and drops them: the optimiser alone would first optimise the callees. Constants
    that all calls of a function pass become constants inside of it, which halves the code of a product.
    """
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_ipsccp_pass()
    manager.add_dead_arg_elimination_pass()
    manager.add_global_dead_code_eliminate_pass()
    return manager


def _mended(module: llvm.ModuleRef, machine: Machine, has_optnone: bool, parse: Parse) -> llvm.ModuleRef:
    """The optimised module without `optnone`, and without masked AVX-512 accesses that LLVM 22.1 miscompiles.

    Both are changes of the text. llvmlite has no call to remove an attribute, and the code generator heeds this one.
    """
    called = {function.name for function in module.functions}
    has_bytes = not NARROW_ACCESSES.isdisjoint(called)
    features = machine.features.split(",")
    has_masks = "+avx512f" in features and (has_bytes or any(name.startswith(_LOAD) for name in called))
    if not has_masks and not has_optnone:
        return module
    text = str(module)
    mended = text.replace(" optnone", "")
    if has_masks:
        mended = _MASKED_LOAD.sub(_apart, mended)
        if has_bytes and "+avx512dq" in features:
            mended = _with_shifted_masks(mended, machine)
    return module if mended == text else parse(mended)


def _apart(found: re.Match[str]) -> str:
    """A masked load of a vectorised loop apart from the operations that use it.

    An operation under the same mask folds the load into a memory operand. If its pass-through value is needed again,
    LLVM splits the two, and loads without the mask, beyond the end of an array. The result of an empty assembly cannot
    be folded.
    """
    indent, name, load, count, element = found.groups()
    bits = int(count) * _BITS.get(element, 0)
    if bits not in _REGISTERS:
        return found[0]
    kind, words = f"<{count} x {element}>", f"<{bits // 32} x i32>"
    lines = (
        f"{name}.read = {load}",
        f"{name}.words = bitcast {kind} {name}.read to {words}",
        f'{name}.apart = call {words} asm "", "=v,0"({words} {name}.words)',
        f"{name} = bitcast {words} {name}.apart to {kind}",
    )
    return "\n".join(indent + line for line in lines)


_BITS: Final = {"i8": 8, "i16": 16, "half": 16, "bfloat": 16, "i32": 32, "float": 32, "i64": 64, "double": 64}
_REGISTERS: Final = (128, 256, 512)
"""Bits of a vector register."""
_LOAD: Final = "llvm.masked.load."
_MASKED_LOAD: Final = re.compile(
    r"^(\s*)(%wide\.masked\.load[\w.]*) = ((?:tail )?call <(\d+) x (\w+)> @llvm\.masked\.load\..*)$", re.MULTILINE
)


def _with_shifted_masks(text: str, machine: Machine) -> str:
    """Disable AVX-512DQ if eight bytes are loaded or stored under a mask.

    Such an access uses sixteen lanes and a mask of sixteen bits, the upper eight cleared by `kmovb`. LLVM treats that
    as a copy: a spilled mask keeps all sixteen bits, and the access touches eight bytes too many. Without the extension
    two shifts clear the mask.
    """
    features = f'"target-features"="{machine.features}'
    return text.replace(features, f"{features},-avx512dq")
