"""LLVM's FileCheck in process: does a text hold these lines, in this order?"""

from __future__ import annotations

import io

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts


def check_ir(text: object, checks: str) -> None:
    """Match a text, or a module as it prints, against `// CHECK` lines. AssertionError with FileCheck's own report."""
    options = Options(match_filename="<checks>", input_file="<text>")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("<text>", str(text)), parser)
    matcher.stderr = report = io.StringIO()
    if matcher.run() != 0:
        raise AssertionError(f"{report.getvalue()}\n--- the text\n{text}")
