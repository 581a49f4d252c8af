"""How a search says what it proved."""

from __future__ import annotations

from compilescope.record.fix_search import FixAttempt
from compilescope.report.fix_search import how_proven


def _fix(before: int, after: int | None) -> FixAttempt:
    return FixAttempt(
        fix="dynamic-sources",
        title="",
        verdict="verified",
        finding="recompile",
        recompiles_before=before,
        recompiles_after=after,
    )


def test_what_gains_nothing_alone_is_not_called_proven_alone() -> None:
    assert how_proven([_fix(2, 1), _fix(2, 0)]) == "individually and together"
    assert how_proven([_fix(1, 1), _fix(1, 1)]) == "together"
    assert how_proven([_fix(3, 1), _fix(1, 1)]) == "together"
