"""`compilescope demo --model`: the quick run, and its one summary."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.options import print_json, report_width
from compilescope.apps.cli.output import tell
from compilescope.apps.cli.progress import working
from compilescope.apps.demo.quick import (
    REPRO,
    Knobs,
    QuickAnswers,
    padded_tokens,
    quick_run,
    usual_backend,
)
from compilescope.apps.demo.tour import make_folder
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.report.blocks import Words

_PADDING = "25%"
_DEVICE = "npu-a"


def quick(model: str, given: Path | None, *, as_json: bool, **asked: Any) -> int:
    _check_packages()
    knobs = _knobs(model, asked)
    folder = make_folder(given, model)
    environment = {"NO_COLOR": "1", "COLUMNS": str(report_width())}
    with working("demo") as work:
        answers = quick_run(knobs, folder, environment, work.show)
    if as_json:
        print_json(_value(answers, knobs, folder))
    else:
        _print_summary(answers, knobs, folder)
    return 0 if answers.good else 1


def _check_packages() -> None:
    for name, extra in (("torch", "torch"), ("transformers", "models")):
        if importlib.util.find_spec(name) is None:
            raise ToolError(
                f"--model needs {name}.",
                hint=f'Install it with: pip install "compilescope[{extra}]"',
            )


def _knobs(model: str, asked: dict[str, Any]) -> Knobs:
    from compilescope.backends.device_files import find_device

    seq = asked["seq"] or Knobs.seq
    device = asked["constraints"] or _DEVICE
    find_device(device)  # Says what is wrong with it, before anything runs.
    if os.path.exists(device):
        device = os.path.abspath(device)
    return Knobs(
        model=model,
        batch=asked["batch"] or Knobs.batch,
        seq=seq,
        padded=padded_tokens(asked["padding"] or _PADDING, seq),
        backend=asked["backend"] or usual_backend(),
        device=device,
        atol=asked["atol"],
        rtol=asked["rtol"],
        fail=asked["fail"] or "",
        home=asked["runs"].absolute() if asked["runs"] else None,
    )


def _print_summary(answers: QuickAnswers, knobs: Knobs, folder: Path) -> None:
    from compilescope.report.blocks import Document, Facts, Part, note

    for ran in answers.commands:
        words = [word for word in ran.command.words if word != "--json"]
        print(f"$ {' '.join(words)}")
    print()
    facts = Facts(tuple(_facts(answers, knobs)))
    kept = note(f"Program, runs and output: {folder}")
    title = f"compilescope demo --model {knobs.model}"
    tell(Document(title, answers.about, (Part("", "", (facts, kept)),)), "")
    sys.stdout.flush()


def _facts(answers: QuickAnswers, knobs: Knobs) -> Iterator[tuple[str, Words]]:
    from compilescope.report.blocks import Span, words

    seen = counts(answers)
    yield "Graphs", words(f"{seen['graphs']} with {seen['ops']} ops")
    yield "Graph breaks", words(str(seen["breaks"]))
    yield "Recompiles", words(str(seen["recompiles"]))
    yield "Fell back to eager", words(str(seen["eager"]))
    found = device_counts(answers)
    text = ", ".join(f"{count} {what}" for what, count in found.items())
    doubt = (answers.preflight or {})["doubt"]
    clear = not doubt and not found["errors"] and not found["unknown"]
    verdict = Span(text, "good" if clear else "bad")
    yield Path(knobs.device).stem, words(verdict, f"; {doubt}" if doubt else "")
    diff = answers.diff or {}
    good = diff["verdict"] == "pass"
    verdict = Span(diff["verdict"], "good" if good else "bad")
    yield f"Numbers, {knobs.backend}", words(verdict, f": {diff['reason']}")
    if answers.minify is not None:
        yield f"Failure at {knobs.fail}", words(_repro(answers.minify))


def _repro(minify: dict[str, Any]) -> str:
    if minify["repro"] is None:
        return f"no repro: {minify['reason']}"
    return f"{REPRO}, verified: {minify['size_before']} -> {minify['size']} operations"


def counts(answers: QuickAnswers) -> dict[str, int]:
    seen = answers.capture or {}
    return {
        "graphs": seen["graphs"],
        "ops": seen["graph_ops"],
        "breaks": len(seen["sites"]),
        "recompiles": sum(frame["count"] for frame in seen["recompiles"]),
        "eager": len(seen["eager_frames"]),
    }


def device_counts(answers: QuickAnswers) -> dict[str, int]:
    [device] = (answers.preflight or {})["devices"].values()
    severities = [violation["severity"] for violation in device["violations"]]
    return {
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "unknown": len(device["unknown"]),
    }


def _value(answers: QuickAnswers, knobs: Knobs, folder: Path) -> dict[str, Any]:
    diff, minify = answers.diff or {}, answers.minify
    repro = None if minify is None or minify["repro"] is None else str(folder / REPRO)
    return {
        "model": knobs.model,
        "about": answers.about,
        "folder": str(folder),
        **counts(answers),
        "backend": knobs.backend,
        "verdict": diff["verdict"],
        "reason": diff["reason"],
        "device": knobs.device,
        "device_findings": device_counts(answers),
        "fail": knobs.fail or None,
        "repro": repro,
        "commands": [
            {
                "command": ran.command.text,
                "exit_status": ran.exit_status,
                "seconds": round(ran.seconds, 3),
            }
            for ran in answers.commands
        ],
    }
