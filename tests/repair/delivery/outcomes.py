"""Outcomes made by hand: what a search would have come to."""

from __future__ import annotations

from typing import Any

from compilescope.change.repair.search.outcome import SearchResult
from compilescope.record.fix_search import FixAttempt, Losses


def attempt(**fields: Any) -> FixAttempt:
    known: dict[str, Any] = {
        "rule": "print-call",
        "finding": "break",
        "cause": "a call of print",
        "fingerprint": "f00d",
        "file": "/home/ada/train.py",
        "line": 4,
        "function": "f",
        "source": "print(y)",
        "fix": "print-while-eager",
        "title": "print in eager runs only",
        "verdict": "verified",
        "reason": "",
        "safe": True,
        "states": "",
        "kept": True,
        "own": True,
        "breaks_before": 2,
        "breaks_after": 1,
        "recompiles_before": 0,
        "recompiles_after": 0,
    }
    return FixAttempt(**{**known, **fields})


def totals(breaks: int = 0, **fields: int) -> Losses:
    known = {"recompiles": 0, "graphs": 1, "operators": 3, "eager": 0, "failures": 0}
    return Losses(breaks=breaks, **{**known, **fields})


def outcome(*attempts: FixAttempt, **fields: Any) -> SearchResult:
    known: dict[str, Any] = {
        "before": totals(2, graphs=3),
        "after": totals(1, graphs=2),
        "verdict": "verified" if any(each.kept for each in attempts) else "unverified",
    }
    return SearchResult(attempts=attempts, **{**known, **fields})
