"""Code of which the headers say that it is no kernel's is refused, by the SDK whatever the service let through."""

from __future__ import annotations

import struct
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.codegen.object_code import only_kernels
from tensorkiln.elf import read_object
from tensorkiln.errors import DeviceError, DiagnosticError
from tensorkiln.object_rules import foreign_symbols, object_problems
from tensorkiln.runtime.engine import load_object
from tests.runtime.kernels import ADD, DOUBLE, compile_object, llvm
from tests.runtime.objects import ABSOLUTE, FILE, REL, RELA, WEAK, WRITABLE_CODE, Name, ObjectSketch, Part

PLAIN = ObjectSketch()
CODE = Part(".text", content=bytes(8))
WIDE = ObjectSketch(parts=(CODE,))


def problems(content: bytes) -> list[str]:
    return object_problems(read_object(content))


def with_part(part: Part) -> ObjectSketch:
    return ObjectSketch(parts=(CODE, part))


def with_name(name: Name) -> ObjectSketch:
    return ObjectSketch(parts=(CODE,), names=(Name("kernel"), name))


@pytest.mark.parametrize(
    "sketch",
    [
        PLAIN,
        WIDE.relocated(),
        WIDE.relocated(offset=4, kind=4),
        ObjectSketch(parts=(CODE,), machine=183).relocated(kind=275),
        with_name(Name("memcpy", home=0, kind=0)),
        with_name(Name("source.ll", home=ABSOLUTE, kind=FILE, binding=0)),
        with_name(Name("end", value=8)),
    ],
)
def test_objects_of_kernels_pass(sketch: ObjectSketch) -> None:
    code = read_object(bytes(sketch))
    assert object_problems(code) == []
    assert foreign_symbols(code) == []


@pytest.mark.parametrize(
    ("sketch", "problem"),
    [
        *(
            (with_part(Part(name, kind)), f"the section {name}, which loaders run")
            for name, kind in [
                (".init_array", 14),
                (".init_array.1", 1),
                (".fini_array", 15),
                (".preinit_array", 16),
                (".ctors", 1),
                (".dtors.65535", 1),
                (".init", 1),
                (".fini", 1),
            ]
        ),
        (with_part(Part(".array", 14)), "the section .array of kind 0xe"),
        (with_part(Part(".dynamic", 6)), "the section .dynamic of kind 0x6"),
        (with_part(Part(".rel.text", REL)), "the section .rel.text of kind 0x9"),
        (
            with_part(Part(".text.patched", flags=WRITABLE_CODE)),
            "the section .text.patched, which is writable and executable",
        ),
        (with_part(Part(".tdata", flags=0x403)), "the section .tdata, which is thread-local"),
        (with_name(Name("chosen", kind=10)), "the symbol chosen of kind 10"),
        (with_name(Name("mine", kind=6)), "the symbol mine of kind 6"),
        (with_name(Name("shared", kind=5)), "the symbol shared of kind 5"),
        (with_name(Name("unique", binding=10)), "the symbol unique of binding 10"),
        (with_name(Name("fixed", home=ABSOLUTE)), "the symbol fixed in no section"),
        (with_name(Name("common", home=0xFFF2)), "the symbol common in no section"),
        (with_name(Name("behind", value=9)), "the symbol behind outside its section"),
        (WIDE.relocated(kind=37), "a relocation of type 37 in .rela.text"),  # R_X86_64_IRELATIVE
        (WIDE.relocated(kind=18), "a relocation of type 18 in .rela.text"),  # R_X86_64_TPOFF64
        (ObjectSketch(parts=(CODE,), machine=243).relocated(), "a relocation of type 2 in .rela.text"),
        (WIDE.relocated(offset=5), "a relocation outside its section in .rela.text"),
        (WIDE.relocated(offset=(1 << 64) - 1), "a relocation outside its section in .rela.text"),
        (WIDE.relocated(symbol=7), "a relocation to no symbol in .rela.text"),
        (WIDE.relocated(target=99), "the section .rela.text of relocations of no section"),
        (ObjectSketch(kind=3), "a file of type 3, not a relocatable object"),
    ],
)
def test_foreign_objects_are_refused_by_compiler_and_client(sketch: ObjectSketch, problem: str) -> None:
    content = bytes(sketch)
    assert problems(content) == [problem]
    with pytest.raises(DiagnosticError) as on_the_service:
        only_kernels(content, "x86_64")
    assert on_the_service.value.details == {"stage": "codegen", "problems": [problem]}


def test_sections_of_relocations_that_overlap_are_not_read() -> None:
    content = bytearray(bytes(WIDE.relocated().relocated()))
    start, size = int.from_bytes(content[40:48], "little"), 64
    for number in (2, 3):  # from the beginning of the file, and nearly all of it
        header = start + number * size
        content[header + 24 : header + 40] = struct.pack("<QQ", 0, (len(content) - 24) // 24 * 24)
    assert problems(bytes(content)) == ["sections of relocations that overlap"]


def test_a_name_that_all_sections_could_have_is_not_read_for_each() -> None:
    with pytest.raises(ValueError, match=r"subsection not found"):
        read_object(bytes(with_part(Part("." + "x" * 5000))))


@pytest.mark.parametrize("binding", [1, WEAK])
@pytest.mark.parametrize("name", ["system", "expf", "dlsym", ""])
def test_a_function_of_the_process_is_none_of_a_kernel(name: str, binding: int) -> None:
    content = bytes(with_name(Name(name, home=0, binding=binding)))
    assert foreign_symbols(read_object(content)) == [name]
    with pytest.raises(DiagnosticError, match=f"calls {name}, which a loader may not find"):
        only_kernels(content, "x86_64")


RUN = """
@llvm.global_{kind} = appending global [1 x {{ i32, ptr, ptr }}] [{{ i32, ptr, ptr }} {{ i32 1, ptr @run, ptr null }}]
define internal void @run() {{
  ret void
}}
"""
HOSTILE = {
    "constructor": (RUN.format(kind="ctors"), r"the section \.(init_array|ctors)[^,]*, which loaders run"),
    "destructor": (RUN.format(kind="dtors"), r"the section \.(fini_array|dtors)[^,]*, which loaders run"),
    "chooser": (
        "@chosen = ifunc void (), ptr @choose\ndefine internal ptr @choose() {\n  ret ptr null\n}\n",
        "the symbol chosen of kind 10",
    ),
    "thread": ("@mine = thread_local global i32 1\n", r"the section \.tdata, which is thread-local"),
    "writable": (
        'module asm ".section .patched,\\22awx\\22,@progbits"\nmodule asm ".byte 0xc3"\n',
        r"the section \.patched, which is writable and executable",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_sdk_does_not_load_what_llvm_makes_of_more_than_kernels(name: str) -> None:
    text, problem = HOSTILE[name]
    llvm.initialize_native_target()
    llvm.initialize_native_asmparser()
    content = compile_object(text + DOUBLE)
    if not content.startswith(b"\x7fELF"):
        pytest.skip("this system's objects are not ELF")
    with pytest.raises(DeviceError, match=f"has a part that no kernel has: .*{problem}") as caught:
        load_object(content, name)
    assert caught.value.details["problems"]


@pytest.mark.parametrize("call", ["system", "expf"])
def test_the_sdk_does_not_load_code_that_calls_what_the_process_has(call: str) -> None:
    text = f"declare i32 @{call}(ptr)\ndefine i32 @caller(ptr %b) {{\n  %r = call i32 @{call}(ptr %b)\n  ret i32 %r\n}}"
    with pytest.raises(DeviceError, match=f"calls {call}, which no kernel needs") as caught:
        load_object(compile_object(text), call)
    assert caught.value.details == {"symbols": [call]}


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_objects_made_by_llvm_pass(triple: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
    code = read_object(cast(bytes, machine.emit_object(llvm.parse_assembly(ADD))))
    assert object_problems(code) == []


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_object_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(bytes(WIDE.relocated()))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(6, len(content) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.integers(0, len(content)))
    try:
        code = read_object(bytes(content[:length] if data.draw(st.booleans()) else content))
        object_problems(code)
        foreign_symbols(code)
    except ValueError:
        pass


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\xcf\xfa\xed\xfe" + bytes(64), "not 64-bit little-endian ELF"),
        (b"\x7fELF\x02\x01" + bytes(58), "section headers are not where they should be"),
        (bytes(ObjectSketch(tables=2)), "several symbol tables"),
        (bytes(with_part(Part(".rela.text", RELA, 0, bytes(25), 1))), "a piece of a relocation"),
    ],
)
def test_unreadable_objects_are_refused(content: bytes, match: str) -> None:
    with pytest.raises(DiagnosticError, match=match):
        only_kernels(content, "x86_64")
