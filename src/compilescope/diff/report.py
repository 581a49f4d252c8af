"""What a comparison found: for people, as JSON, and as a record that the report draws."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilescope.diff.judging import Verdict
from compilescope.diff.recording import recorded, write_recorded
from compilescope.diff.values import ValueDiff
from compilescope.errors import ToolError
from compilescope.model.run import Run
from compilescope.torchapi.trials.survey import from_here

GRADIENTS = ("gradient", "step")
_WORDS = {"pass": "PASS", "fail": "FAIL", "unknown": "INCONCLUSIVE"}
_SHOWN = 12
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
    guilty: tuple[Any, ...] = ()
    """The operations at which the sides part, where they were looked for and found."""
    compiles: int = 0
    """How often the test backend was called, to localise too."""
    notes: tuple[str, ...] = ()
    anchored: bool = False
    """Both sides were held against a float64 run."""
    error_message: str = ""
    """What the test raised."""
    inputs: int = 1
    timestamp: float = 0.0
    reference_run_time: float = 0.0
    test_run_time: float = 0.0
    test_compile_time: float = 0.0
    """Seconds within the backend, and no more."""
    visualization_paths: list[str] = field(default_factory=list)
    draw: Callable[[Run], str] | None = None
    """Draws the record as HTML: a view, which this layer knows nothing of."""

    @property
    def overall_passed(self) -> bool:
        return self.verdict == "pass"

    @property
    def tensor_results(self) -> list[Any]:
        """The comparisons of numbers, as `compare_tensors` gives them."""
        return [diff.numbers for diff in self.diffs if diff.numbers is not None]

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
        for found in self.guilty:
            lines += ["", f"  wrong operation: {guilty_words(found)}"]
        counts = {v: sum(d.verdict == v for d in self.diffs) for v in ("pass", "fail", "unknown")}
        anchor = "compared with float64" if self.anchored else "compared by tolerance"
        lines += [
            "",
            f"  {_counted(len(self.diffs), 'value')}, {anchor}: {counts['pass']} agree, "
            f"{counts['fail']} differ, {counts['unknown']} inconclusive. "
            f"{_counted(self.compiles, 'compile')}.",
        ]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

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
            "guilty": [guilty_dict(found) for found in self.guilty],
            "compiles": self.compiles,
            "float64": self.anchored,
            "inputs": self.inputs,
            "notes": list(self.notes),
            "error": self.error_message,
            "seconds": {
                "reference": self.reference_run_time,
                "test": self.test_run_time,
                "backend": self.test_compile_time,
            },
            "pictures": list(self.visualization_paths),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def save_json(self, filepath: str | os.PathLike[str]) -> str:
        """Write it there; the path comes back."""
        path = Path(filepath)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise ToolError(f"Cannot write {path}: {error.strerror}.") from None
        return str(path)

    def save_run(self, home: str | os.PathLike[str]) -> Path:
        """Write the record as a run that the command line can open."""
        return write_recorded(self, Path(home))

    def _repr_html_(self) -> str | None:
        return self.draw(self.run) if self.draw is not None else None

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<DiffReport of {self.model_name}: {self.verdict}, {len(self.diffs)} values>"


def guilty_words(found: Any) -> str:
    """`aten.gelu (gelu_3) at model.py:12, stage forward, pass cse`."""
    place = f" at {from_here(found.file)}:{found.line}" if getattr(found, "file", "") else ""
    stage = f", stage {found.stage}" if getattr(found, "stage", "") else ""
    name = f" ({found.node})" if getattr(found, "node", "") else ""
    guilty_pass = f", pass {found.pass_name}" if getattr(found, "pass_name", None) else ""
    return f"{found.target}{name}{place}{stage}{guilty_pass}"


def guilty_dict(found: Any) -> dict[str, Any]:
    return found.to_dict() if hasattr(found, "to_dict") else dict(vars(found))


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


def _table(diffs: list[ValueDiff], told: str) -> list[str]:
    width = max(len(diff.path) for diff in diffs)
    lines = []
    for diff in diffs:
        figures = [f"{n} {diff.metrics[n]:.3g}" for n in _FIGURES if n in diff.metrics]
        lines.append(f"  {diff.path:<{width}}  {diff.verdict:<7}  {', '.join(figures)}".rstrip())
        if diff.reason not in told:
            lines.append(f"  {'':<{width}}  {diff.reason}")
    return lines
