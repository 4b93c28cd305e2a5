"""The options of a compile request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from .limits import SHA256_PATTERN
from .nearest import did_you_mean, ended, quoted
from .nodes.base import Record
from .reasons import reason


class CompileOptions(Record):
    """Options of one compile.

    `fast_math` lets mulacc round once instead of twice, and 3x3 convolutions on a CPU take fewer products, whose error
    grows with the largest elements nearby and which are not defined for infinite ones. `dump_stages` keeps the IR text
    of every stage. `cubin` also assembles the PTX of a CUDA target for exactly its architecture, which says how many
    registers and spills each kernel has; it needs NVIDIA's assembler on the server. CPU targets ignore it. Without
    `fusion` every op runs in a kernel of its own and no two values share storage while both are needed: slow, and a
    second opinion on a result that is in doubt. With `schedule` "none" the compiler uses no strategy of its own: MLIR's
    passes alone lower the linalg of each kernel, into plain loops on one thread. That is slower still, and tells a
    wrong strategy from a wrong input to it.

    `tuned` says whether schedules are picked by what was measured, of this very graph, target and build. "prefer" takes
    measurements that are stored, and estimates where there are none; "require" refuses the graph then, and "measure"
    makes them first, on a machine of the target's kind. A SHA-256 names the measurements to use, as a program that was
    compiled by measurements names them.
    """

    fast_math: bool = False
    dump_stages: bool = False
    cubin: bool = False
    fusion: bool = True
    schedule: Literal["auto", "none"] = "auto"
    tuned: Annotated[str, Field(pattern=r"^(off|prefer|require|measure|[0-9a-f]{64})$")] = "off"

    def is_answered_by(self, options: Mapping[str, object]) -> bool:
        """Whether a program with these action options (as JSON, without `dump_stages`) answers such a request."""
        mine, tuned = self.model_dump(mode="json", exclude={"dump_stages"}), options.get("tuned")
        is_measured = isinstance(tuned, str) and re.fullmatch(SHA256_PATTERN, tuned) is not None
        may_be = {"prefer": is_measured or tuned == "off", "require": is_measured, "measure": is_measured}
        return may_be.get(self.tuned, tuned == self.tuned) and mine == {**options, "tuned": self.tuned}


def option_reason(error: ValidationError) -> str:
    """The message for the first error in the options."""
    first = error.errors(include_url=False)[0]
    if not first["loc"]:
        return 'they are given by name, as in {"fast_math": true}.'
    if first["type"] != "extra_forbidden":
        return ended(reason(first))
    name = str(first["loc"][-1])
    return ended(f"there is no option {quoted(name)}{did_you_mean(name, CompileOptions.model_fields)}")
