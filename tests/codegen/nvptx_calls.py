"""A kernel for every intrinsic that the guard lets through, at every width and type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
INTEGERS = ("i1", "i8", "i16", "i32", "i64", "i128")
SATURATING = (
    *("umin", "umax", "smin", "smax"),
    *(f"{sign}{operation}.sat" for sign in "us" for operation in ("add", "sub", "shl")),
)
LENGTHS = (1, 2, 3, 4, 8, 16)
HALF, WORD, SINGLE, DOUBLE = "<2 x half>", "i32", "float", "double"
SHARED, GLOBAL = "ptr addrspace(3)", "ptr addrspace(1)"
TRUTH = "i1"


@dataclass(frozen=True)
class Call:
    """An intrinsic with the types of its result and arguments; an argument may be followed by a constant."""

    name: str
    result: str
    arguments: tuple[str, ...] = ()

    def kernel(self, number: int) -> str:
        """A kernel that calls it on values from memory and stores what it gets."""
        lines: list[str] = []
        values: list[str] = []
        for place, argument in enumerate(self.arguments):
            kind, _, constant = argument.partition("=")
            if not constant and kind in (SHARED, GLOBAL, "ptr"):
                constant = {SHARED: "%s", GLOBAL: "%g", "ptr": "%p"}[kind]
            if not constant:
                constant = f"%a{place}"
                lines.append(f"{constant} = load volatile {kind}, ptr %p, align 64")
            values.append(f"{kind} {constant}")
        call = f"call {self.result} @{self.name}({', '.join(values)})"
        lines += [call] if self.result == "void" else [f"%r = {call}", *self._stores()]
        body = "\n  ".join([*lines, "ret void"])
        return f"define ptx_kernel void @k{number}(ptr %p, {SHARED} %s, {GLOBAL} %g) {{\n  {body}\n}}"

    def _stores(self) -> list[str]:
        if not self.result.startswith("{"):
            return [f"store volatile {self.result} %r, ptr %p, align 64"]
        parts = [part.strip() for part in self.result.strip("{}").replace("> ,", ">,").split(", ")]
        lines: list[str] = []
        for place, part in enumerate(parts):
            lines += [f"%x{place} = extractvalue {self.result} %r, {place}"]
            lines += [f"store volatile {part} %x{place}, ptr %p, align 64"]
        return lines

    @property
    def declaration(self) -> str:
        kinds = ", ".join(argument.partition("=")[0] for argument in self.arguments)
        return f"declare {self.result} @{self.name}({kinds})"


def module(calls: list[Call]) -> str:
    """All of them in one module."""
    declarations = dict.fromkeys(call.declaration for call in calls)
    return "\n".join([*(call.kernel(number) for number, call in enumerate(calls)), *declarations])


def vector(kind: str, length: int) -> tuple[str, str]:
    """The name of a type in an intrinsic's, and in LLVM IR."""
    scalar = FLOATS.get(kind, kind)
    return (kind, scalar) if length == 1 else (f"v{length}{kind}", f"<{length} x {scalar}>")


def generic() -> Iterator[Call]:
    """The intrinsics of LLVM itself."""
    yield from _of_floats()
    yield from _of_integers()
    yield from _of_odd_integers()
    yield from _of_memory()


def _of_floats() -> Iterator[Call]:
    for kind in FLOATS:
        for length in LENGTHS:
            name, type_ = vector(kind, length)
            for operation in ["sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "fabs"]:
                yield Call(f"llvm.{operation}.{name}", type_, (type_,))
            for operation in ["copysign", "minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum"]:
                yield Call(f"llvm.{operation}.{name}", type_, (type_,) * 2)
            for operation in ("fma", "fmuladd"):
                yield Call(f"llvm.{operation}.{name}", type_, (type_,) * 3)
            truth, power = vector("i1", length)[1], vector("i32", length)
            yield Call(f"llvm.is.fpclass.{name}", truth, (type_, "i32=3"))
            yield Call(f"llvm.ldexp.{name}.{power[0]}", type_, (type_, power[1]))
            for integer in INTEGERS[:-1]:
                whole, whole_type = vector(integer, length)
                for operation in ("fptosi", "fptoui"):
                    yield Call(f"llvm.{operation}.sat.{whole}.{name}", whole_type, (type_,))
            if length > 1:
                for operation in ("fadd", "fmul"):
                    yield Call(f"llvm.vector.reduce.{operation}.{name}", FLOATS[kind], (FLOATS[kind], type_))
                for operation in ["fmax", "fmin", "fmaximum", "fminimum"]:
                    yield Call(f"llvm.vector.reduce.{operation}.{name}", FLOATS[kind], (type_,))


def _of_integers() -> Iterator[Call]:
    for kind in INTEGERS:
        for length in LENGTHS:
            name, type_ = vector(kind, length)
            for operation in ("ctpop", "bitreverse"):
                yield Call(f"llvm.{operation}.{name}", type_, (type_,))
            for operation in ("ctlz", "cttz", "abs"):
                yield Call(f"llvm.{operation}.{name}", type_, (type_, "i1=false"))
            for operation in SATURATING:
                yield Call(f"llvm.{operation}.{name}", type_, (type_,) * 2)
            for operation in ("fshl", "fshr"):
                yield Call(f"llvm.{operation}.{name}", type_, (type_,) * 3)
            truth, sign = vector("i1", length)[1], vector("i8", length)
            for operation in ["sadd", "uadd", "ssub", "usub", "smul", "umul"]:
                result = f"{{ {type_}, {truth} }}"
                yield Call(f"llvm.{operation}.with.overflow.{name}", result, (type_,) * 2)
            for operation in ("scmp", "ucmp"):
                yield Call(f"llvm.{operation}.{sign[0]}.{name}", sign[1], (type_,) * 2)
            if length == 1 and kind not in ("i1", "i8"):
                yield Call(f"llvm.bswap.{name}", type_, (type_,))
            if length > 1:
                for operation in ["add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin"]:
                    yield Call(f"llvm.vector.reduce.{operation}.{name}", kind, (type_,))


def _of_odd_integers() -> Iterator[Call]:
    for width in (2, 3, 4, 7, 24, 33, 65, 96, 127):
        kind = f"i{width}"
        for operation in ("ctpop", "bitreverse"):
            yield Call(f"llvm.{operation}.{kind}", kind, (kind,))
        for operation in ("ctlz", "cttz", "abs"):
            yield Call(f"llvm.{operation}.{kind}", kind, (kind, "i1=false"))
        for operation in SATURATING:
            yield Call(f"llvm.{operation}.{kind}", kind, (kind,) * 2)
        for operation in ("sadd", "uadd", "ssub", "usub", "smul", "umul"):
            yield Call(f"llvm.{operation}.with.overflow.{kind}", f"{{ {kind}, i1 }}", (kind,) * 2)


def _of_memory() -> Iterator[Call]:
    for size in ("i32", "i64"):
        for operation in ("memcpy", "memmove"):
            yield Call(f"llvm.{operation}.p0.p0.{size}", "void", ("ptr", "ptr", size, "i1=false"))
            yield Call(f"llvm.{operation}.p3.p1.{size}", "void", (SHARED, GLOBAL, size, "i1=false"))
        yield Call(f"llvm.memset.p0.{size}", "void", ("ptr", "i8", size, "i1=false"))
    for kind in ("f16", "f32", "i8", "i64"):
        name, type_ = vector(kind, 4)
        mask, pointers = "<4 x i1>", "<4 x ptr>"
        yield Call(f"llvm.masked.load.{name}.p0", type_, ("ptr", mask, type_))
        yield Call(f"llvm.masked.store.{name}.p0", "void", (type_, "ptr", mask))
        yield Call(f"llvm.masked.gather.{name}.v4p0", type_, (pointers, mask, type_))
        yield Call(f"llvm.masked.scatter.{name}.v4p0", "void", (type_, pointers, mask))
    yield Call("llvm.vector.insert.v8f32.v4f32", "<8 x float>", ("<8 x float>", "<4 x float>", "i64=4"))
    yield Call("llvm.vector.extract.v4f32.v8f32", "<4 x float>", ("<8 x float>", "i64=4"))
    yield Call("llvm.prefetch.p0", "void", ("ptr", "i32=0", "i32=3", "i32=1"))
    yield Call("llvm.assume", "void", (TRUTH,))
    yield Call("llvm.trap", "void")


VOLTA = [
    *(Call(f"read.ptx.sreg.{what}.{axis}", WORD) for what in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    *(Call(f"read.ptx.sreg.{what}", WORD) for what in ("laneid", "warpid", "nwarpid", "smid", "nsmid", "clock")),
    *(Call(f"read.ptx.sreg.lanemask.{order}", WORD) for order in ["eq", "lt", "le", "gt", "ge"]),
    *(Call(f"read.ptx.sreg.{what}", "i64") for what in ("clock64", "globaltimer")),
    *(Call(f"read.ptx.sreg.{what}_smem_size", WORD) for what in ("dynamic", "total")),
    Call("barrier0", "void"),
    *(Call(f"barrier0.{how}", WORD, (WORD,)) for how in ("popc", "and", "or")),
    *(Call(f"barrier.cta.sync.{how}all", "void", ("i32=0",)) for how in ("", "aligned.")),
    *(
        Call(f"barrier.cta.{what}.{how}count", "void", ("i32=1", "i32=64"))
        for what in ("sync", "arrive")
        for how in ("", "aligned.")
    ),
    Call("barrier.cta.red.popc.aligned.all", WORD, ("i32=0", TRUTH)),
    *(Call(f"barrier.cta.red.{how}.aligned.all", TRUTH, ("i32=0", TRUTH)) for how in ("and", "or")),
    Call("bar.warp.sync", "void", (WORD,)),
    *(Call(f"membar.{scope}", "void") for scope in ("cta", "gl", "sys")),
    *(
        Call(f"shfl.sync.{how}.{kind}{pair}", f"{{ {type_}, i1 }}" if pair else type_, (WORD, type_, WORD, WORD))
        for how in ("bfly", "down", "up", "idx")
        for kind, type_ in (("i32", WORD), ("f32", SINGLE))
        for pair in ("", "p")
    ),
    *(Call(f"vote.{how}.sync", TRUTH, (WORD, TRUTH)) for how in ("any", "all", "uni")),
    Call("vote.ballot.sync", WORD, (WORD, TRUTH)),
    *(Call(f"match.any.sync.{kind}", WORD, (WORD, kind)) for kind in (WORD, "i64")),
    *(Call(f"match.all.sync.{kind}p", "{ i32, i1 }", (WORD, kind)) for kind in (WORD, "i64")),
    Call("activemask", WORD),
    *(Call(f"{what}.approx.{how}f", SINGLE, (SINGLE,)) for what in ("ex2", "lg2", "rsqrt") for how in ("", "ftz.")),
    *(Call(f"{what}.approx.f", SINGLE, (SINGLE,)) for what in ("sin", "cos")),
    Call("rcp.approx.ftz.f", SINGLE, (SINGLE,)),
    Call("rsqrt.approx.d", DOUBLE, (DOUBLE,)),
    *(Call(f"{what}.rn.f", SINGLE, (SINGLE,)) for what in ("rcp", "sqrt")),
    *(Call(f"{what}.rn.d", DOUBLE, (DOUBLE,)) for what in ("rcp", "sqrt")),
    *(Call(f"{what}.rn.f", SINGLE, (SINGLE,) * 2) for what in ("div", "mul", "add")),
    Call("fma.rn.f", SINGLE, (SINGLE,) * 3),
    Call("fma.rn.d", DOUBLE, (DOUBLE,) * 3),
    Call("prmt", WORD, (WORD,) * 3),
    Call("nanosleep", "void", (WORD,)),
    *(Call(f"idp4a.{sign}.{sign}", WORD, (WORD,) * 3) for sign in "su"),
]


def _words(count: int) -> str:
    return WORD if count == 1 else f"{{ {', '.join([WORD] * count)} }}"


SINGLES, HALVES = f"{{ {', '.join([SINGLE] * 4)} }}", f"{{ {HALF}, {HALF} }}"
TURING = [
    *(
        Call(f"ldmatrix.sync.aligned.m8n8.x{count}{how}.b16.p3", _words(count), (SHARED,))
        for count in (1, 2, 4)
        for how in ("", ".trans")
    ),
    Call("mma.m16n8k8.row.col.f32.f32", SINGLES, (*[HALF] * 3, *[SINGLE] * 4)),
    Call("mma.m16n8k8.row.col.f16.f16", HALVES, (HALF,) * 5),
    *(Call(f"mma.m8n8k16.row.col.{kind}", _words(2), (WORD,) * 4) for kind in ("s8", "u8")),
]
AMPERE = [
    *(Call(f"redux.sync.{how}", WORD, (WORD, WORD)) for how in ("add", "min", "max", "umin", "umax", "or", "xor")),
    *(
        Call(f"cp.async.{cache}.shared.global.{size}{zeros}", "void", (SHARED, GLOBAL, *([WORD] if zeros else [])))
        for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16))
        for zeros in ("", ".s")
    ),
    Call("cp.async.commit.group", "void"),
    Call("cp.async.wait.group", "void", ("i32=1",)),
    Call("cp.async.wait.all", "void"),
    Call("mma.m16n8k16.row.col.f32.f32", SINGLES, (*[HALF] * 6, *[SINGLE] * 4)),
    Call("mma.m16n8k16.row.col.f16.f16", HALVES, (HALF,) * 8),
    Call("mma.m16n8k16.row.col.bf16", SINGLES, (*[WORD] * 6, *[SINGLE] * 4)),
    *(Call(f"mma.m16n8k16.row.col.{kind}", _words(4), (WORD,) * 7) for kind in ("s8", "u8")),
    *(Call(f"mma.m16n8k32.row.col.{kind}", _words(4), (WORD,) * 10) for kind in ("s8", "u8")),
    Call("mma.m16n8k8.row.col.bf16", SINGLES, (*[WORD] * 3, *[SINGLE] * 4)),
    Call("mma.m16n8k8.row.col.tf32", SINGLES, (*[WORD] * 6, *[SINGLE] * 4)),
    Call("mma.m16n8k4.row.col.tf32", SINGLES, (*[WORD] * 3, *[SINGLE] * 4)),
    Call("mma.m8n8k4.row.col.f64", f"{{ {DOUBLE}, {DOUBLE} }}", (DOUBLE,) * 4),
    Call("f2tf32.rna", WORD, (SINGLE,)),
    Call("f2bf16.rn", "bfloat", (SINGLE,)),
    Call("ff2f16x2.rn", HALF, (SINGLE, SINGLE)),
    Call("ff2bf16x2.rn", "<2 x bfloat>", (SINGLE, SINGLE)),
]


def device(capability: tuple[int, int]) -> list[Call]:
    """The intrinsics of the device that a compute capability is the first to have."""
    calls = {(7, 0): VOLTA, (7, 5): TURING, (8, 0): AMPERE}[capability]
    return [Call(f"llvm.nvvm.{call.name}", call.result, call.arguments) for call in calls]
