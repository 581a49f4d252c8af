"""What torch.compile makes of a model on one backend: graphs, breaks, recompiles, numbers.

Also what a device does not take. No figure of time comes from here. It drops what was compiled in
this process before, so it has a process of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
from pathlib import Path
from time import time_ns
from typing import Literal

import msgspec
import torch

from compilescope.backends.device_files import find_device
from compilescope.base.errors import ToolError
from compilescope.base.package import PACKAGE
from compilescope.base.version import VERSION
from compilescope.instrument.recorder.journal import MemoryJournal
from compilescope.instrument.recorder.session import recording
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.preflight import DeviceReport, preflight
from compilescope.knowledge.findings.violations import ViolationFinding
from compilescope.measure.bench.memory_room import COPIES, SHARE, free_bytes
from compilescope.measure.bench.model import PreparedModel, prepared
from compilescope.measure.bench.preparation import backend_for
from compilescope.measure.bench.protocol import EAGER, Examination, Spec
from compilescope.measure.diff.harness import KernelDiffHarness
from compilescope.measure.diff.report import DiffReport, tensor_diff
from compilescope.measure.diff.runs.trial import describe_failure
from compilescope.record import bodies
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from compilescope.record.stack import Frame, origin_of

_PACKAGE = Path(PACKAGE)
_MODELS = Path(__file__).with_name("models")
# Chosen: enough calls for a recompile to show; more of them only take time.
_MOST_WARMUP = 3
_MORE_STEPS = 2
"""Beyond the warm-up. Chosen: a graph that is compiled anew for each step shows by then."""
_MOST_DRAWN = 40
"""Values whose errors are kept place by place. Chosen: a page can bear them."""
_MOST_VIOLATIONS = 500
"""That are kept, errors first. Chosen: far more than anyone reads, and a bound for the file."""
_MOST_NAMED = 3
"""Chosen: a sentence with three names can still be read."""


def examine(spec: Spec) -> Examination:
    """ToolError where there is no such model, backend or device here."""
    if spec.backend == EAGER:
        return Examination()
    device = find_device(spec.constraints) if spec.constraints else None
    model = prepared(spec)
    notes: list[str] = []
    run, failure = _captured(model, spec, calls=device is not None)
    seen = digest(run)
    found: list[bodies.Violation | bodies.TensorDiff] = []
    stacks: list[tuple[Frame, ...]] = []
    violations: int | None = None
    if failure:
        # What came after it would have been counted too: these counts would be too low.
        notes.append(f"The compiled model raised {failure}, so its graphs were not counted.")
    else:
        notes += _doubts(seen)
        if device is not None:
            report = preflight(run, seen, [device])[0]
            violations = report.errors if report.graphs else None
            notes += _unchecked(report)
            shown = _first_errors(report)
            found += [_violation(each, report.device, spec) for each in shown]
            stacks += [_stack(each) for each in shown]
    verdict, more, diffs = _compared(model, spec, failed=bool(failure))
    return Examination(
        graphs=None if failure else seen.graphs,
        breaks=None if failure else len(seen.sites),
        recompiles=None if failure else _recompiles(seen),
        violations=violations,
        kerneldiff=verdict,
        notes=(*notes, *more),
        bodies=(*found, *diffs),
        stacks=(*stacks, *(() for _ in diffs)),
    )


def _captured(model: PreparedModel, spec: Spec, *, calls: bool) -> tuple[Run, str]:
    """The record of some steps; and what they raised, if they did."""
    torch.compiler.reset()
    journal = MemoryJournal()
    failure = ""
    with recording(journal, calls=calls):
        try:
            compiled = model.compiled(spec.backend, spec.compile_mode)
            for _ in range(min(spec.warmup, _MOST_WARMUP) + _MORE_STEPS):
                compiled.step()
        except ToolError:
            raise
        except Exception as error:  # The border to the user's model and to the backend.
            failure = describe_failure(error, marked=False)
    torch.compiler.reset()
    gc.collect()
    return Run(_header(spec), journal.events, journal.artifacts), failure


def _header(spec: Spec) -> RunHeader:
    here = os.getcwd()
    return RunHeader(
        run=f"bench-{spec.model}",
        tool=VERSION,
        cwd=here,
        root=here,
        host=socket.gethostname(),
        started_ns=time_ns(),
        exit_status=0,
    )


def _recompiles(seen: Digest) -> int:
    # A recompile that the limit refused left no other trace where it was the first.
    return sum(max(frame.avoidable, int(frame.limit_hit)) for frame in seen.recompiles)


def _doubts(seen: Digest) -> list[str]:
    """What the counts alone don't say."""
    said = []
    if not seen.graphs:
        said.append("Nothing was compiled: torch.compile captured no graph.")
    if seen.hidden_breaks_possible:
        names = _listed(tuple(frame.function for frame in seen.eager_frames))
        said.append(f"{names} fell back to eager, so there may be more graph breaks.")
    said += [f"Not recorded by this torch: {missing.loses}." for missing in seen.unavailable]
    if seen.tool_faults:
        said.append(f"{seen.tool_faults} faults while recording: the counts may be too low.")
    return said


def _unchecked(report: DeviceReport) -> list[str]:
    said = []
    if not report.graphs:
        said.append(f"Unknown on {report.device}: no graph was recorded.")
    if report.unknown:
        rules = _listed(tuple(each.rule or "" for each in report.unknown))
        said.append(f"Unknown on {report.device} in {len(report.unknown)} places: {rules}.")
    if report.not_checked:
        names = _listed(tuple(each.what for each in report.not_checked))
        said.append(f"Not checked on {report.device}: {names}.")
    return said


def _listed(names: tuple[str, ...]) -> str:
    different = tuple(dict.fromkeys(names))
    more = len(different) - _MOST_NAMED
    shown = ", ".join(different[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _first_errors(report: DeviceReport) -> list[ViolationFinding]:
    found = (*report.violations, *report.unknown)
    return sorted(found, key=lambda each: each.severity != "error")[:_MOST_VIOLATIONS]


def _stack(found: ViolationFinding) -> tuple[Frame, ...]:
    """The line, unless it is only the line of ours that calls the model."""
    file = Path(found.file)
    ours = _PACKAGE in file.parents and _MODELS not in file.parents
    if not found.file or ours:
        return ()
    origin = origin_of(found.file)
    return (
        Frame(found.file, found.line, found.function, source=found.source.strip(), origin=origin),
    )


def _violation(found: ViolationFinding, device: str, spec: Spec) -> bodies.Violation:
    return msgspec.convert(
        {
            "rule": found.rule,
            "device": device,
            "op": found.op,
            "found": found.found,
            "allowed": found.allowed,
            "severity": found.severity,
            "remedy": found.first_step,
            "stage": found.stage,
            "model": spec.model,
            "node": found.node,
        },
        bodies.Violation,
    )


def _compared(
    model: PreparedModel, spec: Spec, *, failed: bool
) -> tuple[Literal["pass", "fail", "unknown"], list[str], list[bodies.TensorDiff]]:
    reason = _too_large(model, spec)
    if reason:
        return "unknown", [f"KernelDiff was not run: {reason}"], []
    try:
        report = _report(model, spec)
    except ToolError as error:
        return "unknown", [f"KernelDiff was not run: {error.message}"], []
    except Exception as error:  # The border to the user's model and to the backend.
        return "unknown", [f"KernelDiff ended early: {describe_failure(error, marked=False)}"], []
    notes = []
    if report.verdict != "pass" and not (failed and report.error_message):  # Said already.
        notes.append(f"KernelDiff: {report.reason}.")
    if not report.anchored and not report.error_message:
        notes.append("KernelDiff compared by tolerance: there is no float64 run.")
    return report.verdict, notes, _diffs(report, spec)


def _report(model: PreparedModel, spec: Spec) -> DiffReport:
    training = spec.mode == "training"
    harness = KernelDiffHarness(
        model.model,
        model.args,
        spec.model,
        test_backend=backend_for(spec.backend, spec.constraints),
        kwargs=model.kwargs,
        train=training,
        loss=model.loss if training else None,
        seed=spec.seed,
        options={"mode": spec.compile_mode} if spec.compile_mode else None,
    )
    # As it is measured: a model that computes gradients compiles other graphs.
    with contextlib.nullcontext() if training else torch.no_grad():
        return harness.compare()


def _too_large(model: PreparedModel, spec: Spec) -> str:
    """Why there isn't memory enough; empty: there is."""
    weights = sum(each.numel() * each.element_size() for each in model.model.parameters())
    needed = weights * COPIES[spec.mode]
    if torch.device(spec.device).type == "cuda":
        free = min(int(torch.cuda.mem_get_info()[0]), free_bytes())
    else:
        free = free_bytes()
    if needed <= SHARE * free:
        return ""
    return f"it needs about {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free."


def _diffs(report: DiffReport, spec: Spec) -> list[bodies.TensorDiff]:
    """All values. Where in a tensor the errors are is kept for those that matter: a training step
    compares hundreds."""
    found = []
    drawn = 0
    for diff in report.diffs:
        body = tensor_diff(report, diff)
        keep = drawn < _MOST_DRAWN and (diff.verdict != "pass" or diff.kind == "output")
        drawn += keep
        if not keep:
            body = msgspec.structs.replace(body, errors=None, profiles=(), worst=())
        found.append(msgspec.structs.replace(body, model=spec.model, test=spec.backend))
    return found
