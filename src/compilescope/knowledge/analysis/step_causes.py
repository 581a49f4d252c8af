"""Why a step is slow, in words: each cause of a profile with its remedy.

What the profile cannot know, the run tells: which CUDA graphs were asked for and not used, and why.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from compilescope.knowledge.analysis.step_kernels import (
    StepKernel,
    kernels_by_profile,
    kernels_json,
)
from compilescope.knowledge.profiles.calls import UserLine, operator_name
from compilescope.knowledge.profiles.causes import Cause
from compilescope.knowledge.profiles.step_profile import StepProfile, profiles_of
from compilescope.record.bodies import CudagraphSkip
from compilescope.record.run import Run

_WORDS: dict[str, tuple[str, str]] = {
    "float64": (
        "operators compute in float64{names}",
        "If no digit needs it, keep to float32: look for `.double()`, NumPy arrays and Python "
        "floats made into tensors; `torch.from_numpy(a).float()`.",
    ),
    "transfer": (
        "data is copied from the host to the device in the step{names}",
        "Make it on the device, or pin it (`pin_memory=True`) and copy it with "
        "`non_blocking=True`, a step ahead.",
    ),
    "sync": (
        "the host waits for the device{names}, which then has nothing queued",
        "Keep the value on the device (`.detach()`), and read it every so many steps or after the "
        "loop.",
    ),
    "data": (
        "the step waits for the `DataLoader`",
        "More `num_workers`, `persistent_workers=True`, `prefetch_factor`, or less work a sample.",
    ),
    "layout": (
        "kernels only change the layout of tensors",
        "Keep one layout: `model.to(memory_format=torch.channels_last)` and the input too, or no "
        "`.contiguous()` and transposition between operators.",
    ),
    "copy": (
        "tensors are copied outside of compiled code{names}",
        "Leave the copy out, write into a buffer made once, or move it into the compiled function, "
        "where it is fused.",
    ),
    "tf32": (
        "matrices of float32 are multiplied without TF32, which this device has",
        '`torch.set_float32_matmul_precision("high")`: TF32 has 10 bits of mantissa instead of 23.',
    ),
    "optimizer": (
        "the optimizer is not compiled",
        "`fused=True` where the optimizer has it, or compile its step: "
        "`torch.compile(lambda: opt.step())`.",
    ),
    "uncompiled": (
        "operators run outside of compiled code, one by one{names}",
        "Compile the function that holds them together with the model: loss and all.",
    ),
    "fallback": (
        "compiled code calls kernels of eager mode, which Inductor does not fuse{names}",
        "Write them with operators that Inductor generates code for, or keep them out of the step.",
    ),
    "guards": (
        "guards are checked before each call of compiled code",
        "Fewer compiled functions or fewer things that they read; see `compilescope guards`.",
    ),
    "launches": (
        "{launch_bound}",
        '`mode="reduce-overhead"` (CUDA graphs) launches them together.',
    ),
    "python": (
        "Python runs between operators{names}",
        "Move it out of the step, into the workers of a `DataLoader`, or into the compiled "
        "function.",
    ),
    "collective": (
        "collectives run while nothing else does",
        "Overlap them: `torch.distributed` does so with larger buckets, or gradients earlier.",
    ),
}
_SHORT_GRAPHS = (
    "calls of compiled code spend their time around the kernels, not in them",
    "Compile more at once: larger functions, larger batches.",
)
_IN_GRAPHS = (
    "the host is late although CUDA graphs are used{names}",
    "Fewer, larger compiled functions: each graph break ends a CUDA graph.",
)
_IN_NEW_SIZES = (
    "CUDA graphs were asked for and hardly used: in {setups} of {steps} steps a size was new, and "
    "each combination of sizes needs a graph of its own",
    "Pad the inputs to a few sizes.",
)
_MOSTLY = 0.5
"""Of the steps. Chosen: with fewer new sizes, most steps run from a CUDA graph."""
_PLACE = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\w+))?')
_REMEDIES = (
    ("mutated inputs", "Return the new value instead of changing an input in place, or copy it "
     "into a static tensor outside of the compiled function."),
    ("cpu device", "Move the tensor to the device before the step: a CUDA graph holds no work of "
     "the CPU."),
    ("dynamic shapes", "Pad to a few sizes, or mark the dimension static."),
    ("incompatible op", "Move this operator out of the compiled function."),
)  # fmt: skip
"""A word of torch's reason -> what to do."""


class StepCause(msgspec.Struct, frozen=True):
    """A cause of a slow step."""

    cause: str
    us: float
    share: float
    saves_us: float
    """By which the step would be shorter without it, estimated."""
    why: str
    remedy: str
    lines: list[UserLine]


def step_causes(run: Run, profile: StepProfile) -> list[StepCause]:
    """The one first whose removal saves most."""
    skip = next((body.reason for _, body in run.of(CudagraphSkip)), None)
    return [_step_cause(cause, profile, skip) for cause in profile.causes]


def _step_cause(cause: Cause, profile: StepProfile, skip: str | None) -> StepCause:
    kind: str = cause.cause
    why, remedy = _WORDS[kind]
    lines = cause.lines
    if kind == "launches" and not profile.told.device:
        why, remedy = _SHORT_GRAPHS
    elif kind == "launches" and skip is not None:
        kind, first = "cudagraphs", skip.strip().partition("\n")[0]
        why = f"CUDA graphs were asked for and not used: {first.strip()}"
        remedy = next((text for word, text in _REMEDIES if word in skip), "")
        lines = _lines(skip)
    elif kind == "launches" and profile.graph_setups >= _MOSTLY:
        kind, (why, remedy) = "cudagraphs", _IN_NEW_SIZES
        steps = profile.told.steps
        setups = min(round(profile.graph_setups * steps), steps)
        why = why.format(setups=setups, steps=steps)
        region = profile.told.region
        lines = [UserLine(region.file, region.line, region.function)] if region else []
    elif kind == "launches" and profile.graph_launches:
        why, remedy = _IN_GRAPHS
    name = operator_name(cause.names[0]) if cause.names else ""
    names = f" (`{name}`)" if name else ""
    bound = ""
    if profile.bar is not None:
        each = profile.bar.busy_us / max(profile.bar.kernels, 1)
        bound = f"launch bound: {profile.bar.kernels:.0f} kernels of {each:.0f} µs"
    why = why.replace("{names}", names).replace("{launch_bound}", bound)
    return StepCause(kind, cause.us, cause.share, cause.saves_us, why, remedy, lines)


def _lines(reason: str) -> list[UserLine]:
    return [
        UserLine(file, int(line), function or "") for file, line, function in _PLACE.findall(reason)
    ][-1:]


def steps_json(run: Run) -> list[dict[str, Any]]:
    """As `show --json` has them: one for each process that was asked for a profile."""
    profiles = profiles_of(run)
    kernels = kernels_by_profile(run, profiles)
    return [_json(run, *each) for each in zip(profiles, kernels, strict=True)]


def _json(run: Run, profile: StepProfile, kernels: list[StepKernel]) -> dict[str, Any]:
    bar, told = profile.bar, profile.told
    return {
        "rank": profile.rank,
        "reason": told.reason,
        "device": told.device,
        "function": told.region.function if told.region is not None else None,
        "steps": told.steps,
        "step_ms": bar.step_us / 1e3 if bar else None,
        "profiled_ms": bar.profiled_us / 1e3 if bar else None,
        "parts": [{"part": p.part, "ms": p.us / 1e3, "share": p.share} for p in bar.parts]
        if bar
        else [],
        "causes": [_cause_json(each) for each in step_causes(run, profile)],
        "syncs": [
            {
                "name": sync.name,
                **_line_json(sync.at),
                "calls": sync.calls / bar.steps,
                "waited_ms": sync.waited_us / 1e3,
                "idle_ms": sync.idle_us / 1e3,
                "share": sync.idle_us / bar.profiled_us,
            }
            for sync in bar.syncs
        ]
        if bar
        else [],
        "kernels": kernels_json(kernels),
        "unfused": [
            {
                "first": pair.first,
                "second": pair.second,
                "reason": pair.reason,
                "pairs": pair.count,
                **_line_json(pair.at),
            }
            for pair in profile.unfused
        ],
    }


def _cause_json(told: StepCause) -> dict[str, Any]:
    return {
        "cause": told.cause,
        "ms": told.us / 1e3,
        "share": told.share,
        "saves_ms": told.saves_us / 1e3,
        "why": told.why,
        "remedy": told.remedy,
        **_line_json(told.lines[0] if told.lines else None),
        "lines": [_line_json(at) for at in told.lines],
    }


def _line_json(at: UserLine | None) -> dict[str, Any]:
    return {
        "file": at.file if at else None,
        "line": at.line if at else None,
        "function": at.function if at else None,
    }
