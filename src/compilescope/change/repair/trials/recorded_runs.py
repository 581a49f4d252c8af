"""What is known of a version once it has run: what capture recorded or replays of its compiled
regions gave, and what came of comparing: checks, losses, a verdict.

Data only; other modules judge it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.patterns import late
from compilescope.change.fixes.values.graph_values import ValueFacts
from compilescope.change.repair.trials.child.fatal_inputs import read_fatal
from compilescope.knowledge.analysis.digest import Digest
from compilescope.record.fix_search import FixCheck, FixVerdict, Losses, UncoveredBreak
from compilescope.record.run import Run

_RECORDED = "recorded"
"""The recipe of inputs that are as they were; the module of recipes needs torch."""
EAGER_ALONE = ("trained", "untrained", "border", "border-plus")
"""Recipes that are not asked compiled: who trains would compile another graph, and at the border of
a comparison the last digit decides."""


@dataclass(frozen=True)
class CapturedRun:
    """A version that ran under capture."""

    run: Run
    digest: Digest
    exit_status: int
    """As subprocess has it: negative for a signal."""
    timed_out: bool
    stdout: bytes
    stderr: bytes
    seconds: float
    operators: int
    """Captured in Dynamo's graphs, each piece of a function once."""
    folder: Path
    """Of the run; gone when its workbench is closed."""
    is_part: bool = False
    """It was seen while it ran, and ended because that was enough: its counts say nothing."""


@dataclass(frozen=True)
class ReplayedRun:
    """A version whose compiled regions were called again, on copies of what they were given."""

    folder: Path
    """Where the child wrote; gone when its workbench is closed."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """What it wrote, but for the tensors."""
    exit_status: int = 0
    timed_out: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    lines: Mapping[tuple[str, int], bool] = field(default_factory=dict)
    """Of the lines that were watched, those that ran: was it in a compiled region?"""

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of regions that were recorded, each with its replays."""
        return list(self.record.get("calls", ()))

    @property
    def collective(self) -> list[str]:
        """The names of regions that were not replayed, since other processes take part in them."""
        return list(self.record.get("collective", ()))

    @property
    def surveyed(self) -> ValueFacts:
        """What its variables held, where that was asked for."""
        return read_facts(survey_folder(self.folder))

    @property
    def told(self) -> dict[str, Any]:
        """For who judges it elsewhere."""
        return {"folder": str(self.folder), "exit_status": self.exit_status}

    @property
    def ended_on_made_up(self) -> bool:
        """Was it the end of the process to be given some made-up inputs?"""
        return read_fatal(self.folder) is not None

    @property
    def raising(self) -> list[list[Any]]:
        """The made-up inputs on which it raises."""
        return [
            [call["region"], call["call"], replay["recipe"]]
            for call in self.calls
            for replay in call["replays"]
            if replay["mode"] == "eager" and replay["error"] and replay["recipe"][0] != _RECORDED
        ]

    def plan_without(self, spared: Collection[list[Any]] = ()) -> list[dict[str, Any]]:
        """For another version: the same calls, the same inputs, but for some."""
        return [
            {
                "region": call["region"],
                "call": call["call"],
                "train": any(replay["train"] for replay in call["replays"]),
                "weights": call.get("weights", []),
                "forms": call.get("forms", {}),
                "lists": call.get("lists", {}),
                "changed": sorted({path for r in call["replays"] for path in r["changed"]}),
                "recipes": [
                    [replay["recipe"], _is_safe(replay)]
                    for replay in call["replays"]
                    if replay["mode"] == "eager"
                    and [call["region"], call["call"], replay["recipe"]] not in spared
                ],
            }
            for call in self.calls
        ]


_BEYOND = late(r"\bout of (?:bounds|range)\b|\bnot in the valid range\b")


def _is_safe(replay: Mapping[str, Any]) -> bool:
    """To be asked compiled? An index out of range is an error in eager mode, of any class: `gather`
    raises RuntimeError. Compiled code may read where it points, or end the process from within a
    thread."""
    error = replay["error"]
    if replay["recipe"][0] in EAGER_ALONE:
        return False
    if error is None or error["raised"]:
        return True
    return error["type"] != "IndexError" and not _BEYOND.search(error["message"])


def read_record(folder: Path) -> dict[str, Any]:
    """What a child wrote; empty where it wrote nothing."""
    try:
        found = json.loads((folder / "record.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def survey_folder(folder: Path) -> Path:
    """Of a probe that surveys too."""
    return folder / "survey"


def read_facts(folder: Path) -> ValueFacts:
    """What a child saw of its variables; empty where it wrote nothing."""
    try:
        return msgspec.json.decode((folder / "facts.json").read_bytes(), type=ValueFacts)
    except (OSError, msgspec.DecodeError):
        return ValueFacts()


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a version does what the program did, and loses less."""

    verdict: FixVerdict
    reason: str = ""
    """In one sentence; of a verified version a note, mostly empty."""
    checks: tuple[FixCheck, ...] = ()
    before: Losses = Losses()
    after: Losses = Losses()
    notes: tuple[str, ...] = ()
    """What a reader should know though it decides nothing: inputs left out, sides not taken."""
    inputs: tuple[str, ...] = ()
    """The sets of inputs on which its regions were held against the original's, in words."""
    uncovered: tuple[UncoveredBreak, ...] = ()
    """Graph breaks that the original does not show."""
    not_compared: tuple[str, ...] = ()
    """What a verified version was not held against the original in, in sentences."""
    captured: CapturedRun | None = None
    """The run of the version that was tried."""

    @property
    def ended(self) -> bool:
        """Did it come to its end as the original does? Else what it lost says nothing."""
        failed = any(check.name == "exit" and check.verdict == "fail" for check in self.checks)
        return self.captured is not None and not (failed or self.captured.is_part)


class WeighedRun(msgspec.Struct, frozen=True):
    """What the calls of a program's regions take in one version."""

    operators: int = 0
    """That one call of each runs; 0 where it was to be timed."""
    warm_s: float | None = None
    """A warm call of each, summed; None where none was warm."""
    compile_s: float = 0.0
    memory_bytes: int = 0
    """The most that the process had."""


def share_of(in_graphs: WeighedRun | None, every: WeighedRun | None) -> float | None:
    """Of the operators that calls run, those in graphs; None where they were not counted. What a
    graph holds beside them (a size, an index) must not make it more than all."""
    if in_graphs is None or every is None or not every.operators:
        return None
    return min(1.0, in_graphs.operators / every.operators)


class ComparedValues(msgspec.Struct):
    """What came of holding the values of a version against the original's."""

    checks: list[FixCheck] = []
    notes: list[str] = []
    inputs: list[str] = []
    skipped: list[list[Any]] = []
    """Inputs on which nothing, or not everything, could be compared: region, call, recipe."""

    def unknown(self, words: str) -> None:
        self.checks.append(FixCheck("replays", "unknown", words))

    def add(self, other: ComparedValues) -> None:
        self.checks += other.checks
        self.notes += other.notes
        self.inputs += other.inputs
        self.skipped += other.skipped

    @property
    def is_settled(self) -> bool:
        return any(check.verdict != "pass" for check in self.checks)
