"""A profiled step as rows: what the device does, and what the host did while it waited."""

from __future__ import annotations

from compilescope.model.run import Run
from compilescope.profiles.reading import StepProfile, profiles_of
from compilescope.profiles.step import Part, StepBar, StepTime
from compilescope.report.blocks import Block, Measures, Paragraph, Table, words
from compilescope.report.places import count

_DEVICE: dict[Part, str] = {
    "generated": "generated kernels",
    "library": "library kernels",
    "eager": "eager kernels",
    "collective": "collectives",
    "copy": "copies",
}
_IDLE: dict[Part, tuple[str, str]] = {
    "sync": ("synchronisation", "behind, after a synchronisation"),
    "data": ("loading data", "loading data"),
    "guards": ("guards", "checking guards"),
    "wrapper": ("between kernels", "in compiled code, between its kernels"),
    "launch": ("launches", "launching kernels"),
    "operator": ("eager operators", "in eager operators"),
    "optimizer": ("optimizer", "in the optimizer"),
    "backward": ("autograd", "in autograd"),
    "python": ("Python", "in Python"),
    "latency": ("start of kernels", "done, and the device had not begun"),
}
"""In a row of the bar, and in a sentence: "the host was ..."."""
_MOSTLY_BUSY = 0.1
"""A share of the step. Chosen: a device that idles less than that is not why the step is slow."""
_MOST_SYNCS = 10
_LEAST = 0.001
"""Smaller shares have no row. Chosen: nobody acts on a thousandth."""


def step_blocks(run: Run) -> list[Block]:
    """For each process that was asked for a profile."""
    blocks: list[Block] = []
    profiles = profiles_of(run)
    for profile in profiles:
        if len(profiles) > 1:
            blocks.append(Paragraph(words(f"Rank {profile.rank}")))
        blocks += _one(profile)
    return blocks


def _one(profile: StepProfile) -> list[Block]:
    if profile.bar is None:
        reason = profile.told.reason or "its record is not in the run"
        return [Paragraph(words(f"There is no profile: {reason}."))]
    bar, told = profile.bar, profile.told
    name = told.region.function if told.region is not None else "a compiled region"
    where = told.device or "the CPU"
    title = f"{_ms(bar.step_us)} from one call of {name} to the next, on {where}"
    blocks: list[Block] = [
        Paragraph(words(_verdict(profile, bar))),
        Measures(title, tuple(_row(part, bool(told.device)) for part in _shown(bar))),
        Paragraph(words(_how(bar))),
    ]
    if bar.syncs:
        rows = tuple(
            (words(s.name), words(f"{s.calls / bar.steps:.3g}"), words(_ms(s.idle_us)))
            for s in bar.syncs[:_MOST_SYNCS]
        )
        head = ("the host waits for the device in", "calls a step", "device idle after it")
        blocks.append(Table(head, rows, (1, 2)))
    return blocks


def _shown(bar: StepBar) -> list[StepTime]:
    """What the device does, then why it does nothing; the longest first."""
    parts = [part for part in bar.parts if part.share >= _LEAST]
    return sorted(parts, key=lambda part: (part.part not in _DEVICE, -part.us))


def _row(part: StepTime, device: bool) -> tuple[str, float, str]:
    busy = part.part in _DEVICE
    label = _DEVICE[part.part] if busy else _IDLE[part.part][0]
    if device:
        label = f"busy: {label}" if busy else f"idle: {label}"
    return label, part.us, f"{_ms(part.us)} {part.share:.1%}"


def _verdict(profile: StepProfile, bar: StepBar) -> str:
    """What a person would say after a look at it."""
    if not profile.told.device:
        most = max(bar.parts, key=lambda part: part.us)
        return f"Most of the step, {most.share:.0%}: {_row(most, False)[0]}."
    idle = [part for part in bar.parts if part.part not in _DEVICE]
    share = sum(part.share for part in idle)
    kernels = f"{bar.kernels:.0f} kernels a step, {bar.busy_us / max(bar.kernels, 1):.1f} µs each"
    if share < _MOSTLY_BUSY:
        return f"The device is busy for {1 - share:.0%} of the step: {kernels}."
    most = max(idle, key=lambda part: part.us)
    return (
        f"The device is idle for {share:.0%} of the step, most of all while the host was "
        f"{_IDLE[most.part][1]} ({most.share:.0%}): {kernels}."
    )


def _how(bar: StepBar) -> str:
    words_ = f"Mean of {count(bar.steps, 'step')} in steady state, recorded by torch's profiler"
    if bar.profiled_us > bar.step_us:
        words_ += (
            f" (under it a step takes {_ms(bar.profiled_us)}: what it takes itself is taken off)"
        )
    return f"{words_}."


def _ms(us: float) -> str:
    return f"{us / 1e3:.3g} ms" if us >= 10 else f"{us:.3g} µs"
