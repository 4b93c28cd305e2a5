"""LLVM IR text as a relocatable object for a CPU."""

from __future__ import annotations

import re
from typing import Final

import llvmlite.binding as llvm

from tensorkiln.elf import read_object
from tensorkiln.errors import DiagnosticError
from tensorkiln.object_rules import foreign_symbols, object_problems
from tensorkiln.target import Target

from .function_attributes import attach
from .llvm_targets import initialize
from .machine import Machine, machine_of

NARROW_ACCESSES = frozenset({"llvm.masked.load.v8i8.p0", "llvm.masked.store.v8i8.p0"})


def emit(llvm_ir: str, target: Target) -> bytes:
    """Position-independent object code of an optimised module; equal arguments give equal bytes on any machine.

    Raises DiagnosticError when LLVM refuses the module or the target, and when the object would need a symbol that
    the process loading it is not sure to have (a call into the maths library or the compiler's run time), or has what
    the SDK does not load (`tensorkiln.object_rules`).
    """
    machine = machine_of(target)
    handle = _target_machine(machine)
    code = bytes(handle.emit_object(_optimised(llvm_ir, machine, handle)))
    only_kernels(code, machine.triple)
    return code


def only_kernels(code: bytes, triple: str) -> None:
    """Check that the SDK will load an object: DiagnosticError that names every symbol or part that it refuses."""
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
    machine = machine_of(target)
    handle = _target_machine(machine)
    return str(handle.emit_assembly(_optimised(llvm_ir, machine, handle)))


def optimised_ir(llvm_ir: str, target: Target) -> str:
    """The module after LLVM's optimiser, as text, for dumps. Raises DiagnosticError as `emit` does for bad IR."""
    machine = machine_of(target)
    return str(_optimised(llvm_ir, machine, _target_machine(machine)))


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


def _optimised(llvm_ir: str, machine: Machine, handle: llvm.TargetMachine) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(attach(llvm_ir, machine.function_attributes))
        module.verify()
    except RuntimeError as error:
        raise DiagnosticError(f"LLVM refused the module: {error}", details={"stage": "codegen"}) from error
    module.triple = machine.triple
    module.data_layout = str(handle.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.loop_interleaving = True
    options.loop_unrolling = False
    # It costs compile time, and gains on straight-line code only.
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(handle, options)
    for manager in (_inliner(), builder.getModulePassManager()):
        manager.run(module, builder)
    return _mended(module, machine)


def _inliner() -> llvm.ModulePassManager:
    """Inlines what always is, and drops it. The optimiser inlines from the callees up, when it has optimised those."""
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_global_dead_code_eliminate_pass()
    return manager


def _mended(module: llvm.ModuleRef, machine: Machine) -> llvm.ModuleRef:
    """The optimised module, without what LLVM 22.1 generates wrong code for: accesses under masks of AVX-512."""
    features, called = machine.features.split(","), {function.name for function in module.functions}
    has_bytes = not NARROW_ACCESSES.isdisjoint(called)
    if "+avx512f" not in features or not (has_bytes or any(name.startswith(_LOAD) for name in called)):
        return module
    text = str(module)
    mended = _with_loads_apart(text)
    if has_bytes and "+avx512dq" in features:
        mended = _with_shifted_masks(mended, machine)
    return module if mended == text else llvm.parse_assembly(mended)


def _with_loads_apart(text: str) -> str:
    """Loads of loops that are vectorised under a mask, apart from the operations that they are for.

    An operation under the same mask takes the load for an operand in memory. Where its result begins as a value that is
    needed again, LLVM takes the two apart, and loads without the mask: behind the end of an array. What comes from an
    empty assembly is no operand in memory.
    """
    return _MASKED_LOAD.sub(_apart, text)


def _apart(found: re.Match[str]) -> str:
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
"""Bits of a register of vectors."""
_LOAD: Final = "llvm.masked.load."
_MASKED_LOAD: Final = re.compile(
    r"^(\s*)(%wide\.masked\.load[\w.]*) = ((?:tail )?call <(\d+) x (\w+)> @llvm\.masked\.load\..*)$", re.MULTILINE
)


def _with_shifted_masks(text: str, machine: Machine) -> str:
    """Without AVX-512DQ where eight bytes are loaded or stored by a mask.

    Such an access takes sixteen lanes and a mask of as many, of which the upper eight are cleared by `kmovb`. LLVM
    takes that for a copy: a mask that it spills has all sixteen lanes, and the access reads eight bytes too many.
    Without the extension the mask is cleared by two shifts.
    """
    features = f'"target-features"="{machine.features}'
    return text.replace(features, f"{features},-avx512dq")
