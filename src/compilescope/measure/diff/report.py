"""What a comparison found, in its three forms: text for people, JSON, and a record.

The record has one event for each value, so that every view of a run draws a comparison too.
"""

from __future__ import annotations

import json
import math
import os
import platform
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import time_ns
from typing import Any

import torch

from compilescope.base.errors import ToolError
from compilescope.base.outputs import output_file
from compilescope.base.texts import visible
from compilescope.base.version import VERSION
from compilescope.measure.diff.input_sets import InputSet
from compilescope.measure.diff.localize.records import GuiltyOperation
from compilescope.measure.diff.values import ValueDiff
from compilescope.measure.tensors.comparison import (
    ENDLESS,
    DimensionProfile,
    ErrorMap,
    TensorComparison,
)
from compilescope.record import bodies
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.body import Verdict
from compilescope.record.event import Event, encode
from compilescope.record.header import RunHeader
from compilescope.record.home import create_run, new_run_id
from compilescope.record.outcomes import (
    ComparedInputs,
    ErrorGrid,
    ErrorProfile,
    WorstValue,
    WrongOperation,
)
from compilescope.record.run import Run
from compilescope.record.run_files import note_product
from compilescope.record.stack import Frame, origin_of

GRADIENTS = ("gradient", "step")
_WORDS = {"pass": "PASS", "fail": "FAIL", "unknown": "INCONCLUSIVE"}
_SHOWN = 12
"""Rows of a table in a terminal. Chosen; the JSON has all of them."""
_FIGURES = ("max_abs", "max_rel", "mismatch_percentage")


@dataclass
class DiffReport:
    """The result of `KernelDiffHarness.compare()`."""

    model_name: str
    reference_backend: str
    test_backend: str
    verdict: Verdict
    reason: str
    diffs: tuple[ValueDiff, ...] = ()
    guilty: tuple[GuiltyOperation, ...] = ()
    """The operations at which the sides part, where they were looked for and found."""
    compiles: int = 0
    """How often the test backend was called, to localise too."""
    notes: tuple[str, ...] = ()
    anchored: bool = False
    """Both sides were held against a float64 run."""
    error_message: str = ""
    """What the test raised."""
    inputs: int = 1
    input_sets: tuple[InputSet, ...] = ()
    """One for each set of inputs, in the order in which they were run."""
    timestamp: float = 0.0
    reference_run_time: float = 0.0
    test_run_time: float = 0.0
    test_compile_time: float = 0.0
    """Seconds within the backend, and no more."""
    reference_compile_time: float = 0.0
    """The same for the reference; 0 for eager mode."""
    visualization_paths: list[str] = field(default_factory=list)
    report_path: str = ""
    """Where the JSON was written; empty if it wasn't."""
    draw: Callable[[Run], str] | None = None
    """Draws the record as HTML: a view, which this layer knows nothing of."""

    @property
    def overall_passed(self) -> bool:
        return self.verdict == "pass"

    @property
    def passed(self) -> bool:
        """The same as `overall_passed`."""
        return self.overall_passed

    @property
    def tensor_results(self) -> list[Any]:
        """The comparisons of numbers, as `compare_tensors` gives them, each with the verdict that
        it has in this report."""
        return [
            replace(diff.numbers, name=diff.path, verdict=diff.verdict, reason=diff.reason)
            for diff in self.diffs
            if diff.numbers is not None
        ]

    @property
    def results(self) -> list[Any]:
        """The same as `tensor_results`."""
        return self.tensor_results

    @property
    def total_tensors(self) -> int:
        return len(self.tensor_results)

    @property
    def passed_tensors(self) -> int:
        return sum(d.verdict == "pass" for d in self.diffs if d.numbers is not None)

    @property
    def failed_tensors(self) -> int:
        return sum(d.verdict == "fail" for d in self.diffs if d.numbers is not None)

    @property
    def run(self) -> Run:
        """The record: what `compilescope report` draws."""
        return recorded(self)

    def summary(self) -> str:
        """Plain text."""
        lines = [
            f"{_WORDS[self.verdict]}  {self.model_name}: {self.test_backend} vs. "
            f"{self.reference_backend}",
            f"  {self.reason}",
        ]
        wrong = [diff for diff in self.diffs if diff.verdict != "pass"]
        if wrong:
            lines += ["", *_table(wrong[:_SHOWN], self.reason)]
            if len(wrong) > _SHOWN:
                lines.append(f"  ... and {len(wrong) - _SHOWN} more")
        if len(self.input_sets) > 1:
            lines += ["", *_sets_table(self.input_sets)]
        for found in self.guilty:
            lines += ["", f"  wrong operation: {found.words()}"]
        counts = {v: sum(d.verdict == v for d in self.diffs) for v in ("pass", "fail", "unknown")}
        anchor = "compared with float64" if self.anchored else "compared by tolerance"
        lines += [
            "",
            f"  {_counted(len(self.diffs), 'value')}, {anchor}: {counts['pass']} agree, "
            f"{counts['fail']} differ, {counts['unknown']} inconclusive. "
            f"{_counted(self.compiles, 'compile')}.",
        ]
        lines += [f"  note: {note}" for note in self.notes]
        if self.report_path or self.visualization_paths:
            lines.append(f"  wrote {files_words(self.report_path, self.visualization_paths)}")
        return visible("\n".join(lines))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is not finite is written as text."""
        return {
            "model": self.model_name,
            "reference": self.reference_backend,
            "test": self.test_backend,
            "verdict": self.verdict,
            "reason": self.reason,
            "outputs": {d.path: _value(d) for d in self.diffs if d.kind not in GRADIENTS},
            "gradients": {d.path: _value(d) for d in self.diffs if d.kind in GRADIENTS},
            "guilty": [found.to_dict() for found in self.guilty],
            "compiles": self.compiles,
            "float64": self.anchored,
            "inputs": self.inputs,
            "input_sets": [each.to_dict() for each in self.input_sets],
            "notes": list(self.notes),
            "error": self.error_message,
            "seconds": {
                "reference": self.reference_run_time,
                "test": self.test_run_time,
                "backend": self.test_compile_time,
            },
            "pictures": list(self.visualization_paths),
            **self._older_keys(),
        }

    def _older_keys(self) -> dict[str, Any]:
        """What readers of older reports look for."""
        return {
            "model_name": self.model_name,
            "timestamp": self.timestamp,
            "overall_passed": self.overall_passed,
            "total_tensors": self.total_tensors,
            "passed_tensors": self.passed_tensors,
            "failed_tensors": self.failed_tensors,
            "tensor_results": [_older_result(result) for result in self.tensor_results],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def save_json(self, filepath: str | os.PathLike[str]) -> str:
        """Write it there; the path comes back."""
        path = Path(filepath)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with output_file(path) as file:
                file.write((self.to_json() + "\n").encode())
        except OSError as error:
            raise ToolError(f"Cannot write {path}: {error.strerror}.") from None
        self.report_path = str(path)
        return self.report_path

    def save_run(self, home: str | os.PathLike[str]) -> Path:
        """Write the record as a run that the command line can open."""
        return write_recorded(self, Path(home))

    def _repr_html_(self) -> str | None:
        return self.draw(self.run) if self.draw is not None else None

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<DiffReport of {self.model_name}: {self.verdict}, {len(self.diffs)} values>"


def files_words(report: str, pictures: list[str]) -> str:
    """`reports/net.json and 3 pictures in reports`."""
    folders = dict.fromkeys(os.path.dirname(path) or os.curdir for path in pictures)
    drawn = f"{_counted(len(pictures), 'picture')} in {', '.join(folders)}" if pictures else ""
    return " and ".join(part for part in (report, drawn) if part)


def _older_result(result: Any) -> dict[str, Any]:
    told = {name: _plain(value) for name, value in result.older_figures().items()}
    head = {"name": result.name, "passed": result.passed, "shape": list(result.shape)}
    return {**head, "dtype": result.dtype, **told}


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _value(diff: ValueDiff) -> dict[str, Any]:
    told = diff.numbers.to_dict() if diff.numbers is not None else {}
    told.pop("name", None)
    told.pop("profiles", None)
    metrics = {name: _plain(value) for name, value in diff.metrics.items()}
    return {
        **told,
        "kind": diff.kind,
        "verdict": diff.verdict,
        "reason": diff.reason,
        "metrics": metrics,
    }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _sets_table(sets: tuple[InputSet, ...]) -> list[str]:
    verdicts = {"pass": "agrees", "fail": "differs", "unknown": "inconclusive"}
    told = [(each.label, "" if each.skipped else verdicts[each.verdict]) for each in sets]
    label, verdict = (max(len(entry[at]) for entry in told) for at in (0, 1))
    return [
        f"  {name:<{label}}  {said:<{verdict}}  {each.compiled}"
        for (name, said), each in zip(told, sets, strict=True)
    ]


def _table(diffs: list[ValueDiff], told: str) -> list[str]:
    width = max(len(diff.path) for diff in diffs)
    lines = []
    for diff in diffs:
        figures = [f"{n} {diff.metrics[n]:.3g}" for n in _FIGURES if n in diff.metrics]
        lines.append(f"  {diff.path:<{width}}  {diff.verdict:<7}  {', '.join(figures)}".rstrip())
        if diff.reason not in told:
            lines.append(f"  {'':<{width}}  {diff.reason}")
    return lines


_DEVICES = ("cuda", "xpu", "mps")


def recorded(report: DiffReport) -> Run:
    return Run(_header(report), list(_events(report)), MemoryArtifacts())


def write_recorded(report: DiffReport, home: Path) -> Path:
    """A run in `home`; its folder comes back."""
    run = recorded(report)
    folder = create_run(home, run.header)
    try:
        lines = b"".join(encode(event) + b"\n" for event in run.events)
        (folder / "events-0.jsonl").write_bytes(lines)
    except OSError as error:
        raise ToolError(f"Cannot write the run under {home}: {error.strerror}.") from None
    for picture in report.visualization_paths:
        note_product(folder, "picture", Path(picture))
    return folder


def _header(report: DiffReport) -> RunHeader:
    now = time_ns()
    return RunHeader(
        run=new_run_id(f"diff-{report.model_name}"),
        tool=VERSION,
        command=(_program(sys.argv[0]), *sys.argv[1:]),
        cwd=os.getcwd(),
        root=os.getcwd(),
        host=socket.gethostname(),
        started_ns=int(report.timestamp * 1e9) or now,
        ended_ns=now,
        main_pid=os.getpid(),
        exit_status=0,
    )


def _program(path: str) -> str:
    """The name that a person would type: of a package that runs itself, the package's."""
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == "__main__.py" and folder else name


def _events(report: DiffReport) -> list[Event]:
    device = next((name for name in _DEVICES if _is_there(name)), "cpu")
    started = bodies.ProcessStarted(
        argv=tuple(sys.argv),
        python=platform.python_version(),
        torch=str(torch.__version__),
        parent_pid=os.getppid(),
        device=device,
    )
    found: list[tuple[Any, tuple[Frame, ...]]] = [(started, ())]
    guilty = _guilty_words(report)
    stack = tuple(_frame(item) for item in report.guilty[:1] if item.file)
    found.append((_outcome(report), stack))
    for diff in report.diffs:
        wrong = diff.verdict == "fail"
        body = tensor_diff(report, diff, guilty if wrong else "")
        found.append((body, stack if wrong else ()))
    found.append((bodies.ProcessEnded(), ()))
    # The order of events is that of their times.
    now = time_ns()
    return [
        Event(id=f"0.{number}", time_ns=now + number, pid=os.getpid(), body=body, stack=frames)
        for number, (body, frames) in enumerate(found)
    ]


def _outcome(report: DiffReport) -> bodies.DiffOutcome:
    return bodies.DiffOutcome(
        model=report.model_name,
        reference=report.reference_backend,
        test=report.test_backend,
        verdict=report.verdict,
        reason=report.reason,
        error=report.error_message,
        float64=report.anchored,
        compiles=report.compiles,
        operations=tuple(_operation(each) for each in report.guilty),
        inputs=tuple(
            ComparedInputs(each.label, each.verdict, each.compiled) for each in report.input_sets
        ),
        notes=report.notes,
    )


def _operation(found: GuiltyOperation) -> WrongOperation:
    return WrongOperation(
        found.words(), found.file or "", found.line or 0, found.function, found.source
    )


def tensor_diff(report: DiffReport, diff: ValueDiff, guilty: str = "") -> bodies.TensorDiff:
    numbers = diff.numbers
    worst = () if numbers is None else tuple(_worst(element) for element in numbers.worst)
    return bodies.TensorDiff(
        path=diff.path,
        verdict=diff.verdict,
        reason=diff.reason,
        model=report.model_name,
        reference=report.reference_backend,
        test=report.test_backend,
        # JSON has no infinity: a figure that is not finite is told in the reason.
        metrics={name: value for name, value in diff.metrics.items() if math.isfinite(value)},
        guilty=guilty,
        input=_input_words(report, diff.input),
        role=diff.kind,
        shape=numbers.shape if numbers is not None else None,
        dtype=numbers.dtype if numbers is not None else "",
        worst=worst,
        errors=error_grid(numbers.errors) if numbers is not None else None,
        profiles=error_profiles(numbers) if numbers is not None and diff.verdict != "pass" else (),
    )


def _input_words(report: DiffReport, number: int) -> str:
    if len(report.input_sets) < 2:
        return ""
    found = next((each for each in report.input_sets if each.number == number), None)
    return f"{found.label}: {found.compiled}" if found is not None else ""


def _worst(element: Any) -> WorstValue:
    return WorstValue(
        tuple(element.index), _text(element.reference), _text(element.test), _text(element.error)
    )


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _guilty_words(report: DiffReport) -> str:
    return "; ".join(found.words() for found in report.guilty[:3])


def _frame(found: GuiltyOperation) -> Frame:
    file = found.file or ""
    return Frame(file, found.line or 0, found.function, source=found.source, origin=origin_of(file))


def _is_there(name: str) -> bool:
    module = getattr(torch, name, None)
    return bool(module is not None and module.is_available())


_LEVELS = 8
"""Chosen: steps of colour that one can tell apart, as single digits."""
_PLACES = 3
"""Of a dimension, the worst. Chosen: what a sentence can name."""


def error_grid(found: ErrorMap | None) -> ErrorGrid | None:
    if found is None:
        return None
    known = [value for value in found.cells if 0 < value < math.inf]
    low, high = min(known, default=1.0), max(known, default=1.0)
    lines = tuple("".join(_level(v, low, high) for v in line) for line in found.lines())
    histogram = tuple((n, count) for n, count in found.histogram if n < ENDLESS)
    return ErrorGrid(
        lines, low, high, found.row_size, found.column_size, histogram, zeros=found.zeros
    )


def error_profiles(found: TensorComparison) -> tuple[ErrorProfile, ...]:
    return tuple(_profile(profile) for profile in found.profiles if profile.size > 1)


def _profile(profile: DimensionProfile) -> ErrorProfile:
    ends = (*profile.starts[1:], profile.size)
    largest = [value if math.isfinite(value) else 0.0 for value in profile.max_abs]
    entries = [
        (start, end - start, error, wrong)
        for start, end, error, wrong in zip(
            profile.starts, ends, largest, profile.mismatched, strict=True
        )
    ]
    entries.sort(key=lambda entry: (-entry[3], -entry[2], entry[0]))
    half = max(largest, default=0.0) / 2
    many = sum(value > half for value in largest)
    worst = tuple(entry for entry in entries[:_PLACES] if entry[2] or entry[3])
    return ErrorProfile(profile.dimension, profile.size, worst, many)


def _level(value: float, low: float, high: float) -> str:
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return str(_LEVELS + 1)
    if high <= low:
        return str(_LEVELS)
    share = math.log(value / low) / math.log(high / low)
    return str(1 + round(share * (_LEVELS - 1)))
