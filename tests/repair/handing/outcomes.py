"""Outcomes made by hand: what a search would have come to."""

from __future__ import annotations

from typing import Any

from compilescope.repair.search.outcome import Attempt, Outcome, Totals


def attempt(**fields: Any) -> Attempt:
    known: dict[str, Any] = {
        "rule": "print-call",
        "kind": "break",
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
    return Attempt(**{**known, **fields})


def totals(breaks: int = 0, **fields: int) -> Totals:
    known = {"recompiles": 0, "graphs": 1, "operators": 3, "eager": 0, "failures": 0}
    return Totals(breaks=breaks, **{**known, **fields})


def outcome(*attempts: Attempt, **fields: Any) -> Outcome:
    known: dict[str, Any] = {
        "before": totals(2, graphs=3),
        "after": totals(1, graphs=2),
        "verdict": "verified" if any(each.kept for each in attempts) else "unverified",
    }
    return Outcome(attempts=attempts, **{**known, **fields})
