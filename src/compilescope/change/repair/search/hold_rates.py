"""How often a fix holds once it is proposed: what to try first where time is short.

Measured by `benchmarks/fix_hold_rates.py` over the programs of tests/fixes/programs. Quality, the
order of the repertoire, decides where there is time: a table never changes what is handed out then.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.change.fixes.fix import Fix

HELD_OF_TRIED: dict[str, tuple[int, int]] = {
    "autograd-traced": (2, 2),
    "capture-scalars": (3, 6),
    "capture-scalars-and-shapes": (0, 3),
    "capture-shapes": (2, 2),
    "class-at-top": (1, 1),
    "clone-for-deepcopy": (1, 1),
    "compile-second-call": (1, 1),
    "cond-for-if": (5, 8),
    "cond-for-return": (1, 2),
    "contiguous-argument": (1, 3),
    "converted-argument": (0, 1),
    "copy-method": (1, 1),
    "default-outside": (1, 1),
    "device-given": (1, 1),
    "dynamic-sources": (0, 4),
    "dynamic-true": (4, 6),
    "environment-switch": (0, 1),
    "explicit-break-removed": (0, 1),
    "first-call-eager": (1, 1),
    "functional-for-autograd": (1, 1),
    "grad-mode-called": (1, 1),
    "grad-mode-inside": (1, 1),
    "housekeeping-while-eager": (2, 2),
    "index-by-view": (1, 2),
    "isolated-recompiles": (1, 1),
    "leaf-for-grad-fn": (1, 1),
    "mark-dynamic": (2, 2),
    "mark-unbacked": (1, 1),
    "masked-reduction": (2, 2),
    "masked-store": (1, 1),
    "math-for-numpy": (1, 1),
    "no-grad-around": (1, 2),
    "nonstrict-part": (1, 1),
    "number-for-output": (1, 1),
    "numpy-at-top": (1, 1),
    "outside-of-compiled": (6, 7),
    "print-after-graph": (1, 1),
    "print-in-graph": (2, 7),
    "print-while-eager": (0, 5),
    "requires-grad-after": (0, 1),
    "rnn-traced": (1, 1),
    "scipy-operator": (1, 2),
    "separate-argument": (0, 1),
    "tensor-for-number": (3, 4),
    "tensor-logic": (1, 1),
    "threshold-first": (1, 1),
    "torch-random": (1, 1),
    "unbind-for-tolist": (1, 1),
    "uniform-for-random": (1, 1),
    "unspecialised-ints": (0, 2),
    "value-from-outside": (2, 2),
    "warn-when-compiled": (1, 1),
    "where-for-conditional": (1, 1),
    "where-for-if": (9, 11),
    "where-for-return": (3, 4),
    "while-loop": (1, 1),
    "with-for-exit-stack": (1, 1),
}
"""Of 99 of the programs, on torch 2.13."""
_POOR = 0.5
"""Below it a fix fails more often than it holds. Nothing else is decided by it but the order."""


def likely_first(fixes: Sequence[Fix]) -> list[Fix]:
    """In their own order, but for those that fail more often than not: they come last."""
    return sorted(fixes, key=lambda fix: hold_rate(fix.id) < _POOR)


def hold_rate(name: str) -> float:
    """From 0 to 1; a fix of which nothing is known may well hold."""
    held, tried = HELD_OF_TRIED.get(name, (0, 0))
    return (held + 1) / (tried + 1)
