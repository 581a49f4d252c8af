"""A profiled step as rows: what the device does, and what the host did while it waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from compilescope.knowledge.analysis.step_causes import StepCause, step_causes
from compilescope.knowledge.analysis.step_kernels import (
    RoofPoint,
    StepKernel,
    faster_than_roof,
    kernels_by_profile,
    merged,
    roof_of,
    roof_points,
)
from compilescope.knowledge.profiles.calls import UserLine, operator_name
from compilescope.knowledge.profiles.kernel_rows import Bound, KernelRow, Roof
from compilescope.knowledge.profiles.step import Part, StepBar, StepTime
from compilescope.knowledge.profiles.step_profile import StepProfile, profiles_of
from compilescope.record.run import Run
from compilescope.report.blocks import (
    Block,
    Measures,
    Paragraph,
    Roofline,
    RooflineDot,
    Span,
    Table,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.links import line_target
from compilescope.report.places import count, place, shown_number, shown_rate
from compilescope.report.section import Reading

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
"""Rows. Chosen: the longest few are what a reader acts on."""
_MOST_KERNELS = 12
"""Rows. Chosen: in the steps that were looked at, the rest was less than a tenth of the time."""
_MOST_UNFUSED = 10
"""Rows. Chosen: as of synchronisations."""
_MOST_DOTS = 40
"""Of the roofline. Chosen: those of most time; more would hide one another."""
_MOST_NAME, _MOST_CODE = 44, 40
"""Letters of a kernel's name, and of a line beside it. Chosen: with the numbers they fit on a page
of 1280 pixels."""
_AGAIN = " The next `run --profile` measures it again."
_MOST_CAUSES = 3
"""After the first one. Chosen: who mends four things measures again."""
_ALIKE = 0.1
"""Chosen: an estimate that is nearer needs no second figure, and one of less than that no first."""
_LEAST = 0.001
"""Smaller shares have no row. Chosen: nobody acts on a thousandth."""


def step_blocks(reading: Reading) -> list[Block]:
    """For each process that was asked for a profile; in full with each kernel."""
    blocks: list[Block] = []
    profiles = reading.once(step_profiles)
    for number, profile in enumerate(profiles):
        if len(profiles) > 1:
            blocks.append(Paragraph(words(f"Rank {profile.rank}")))
        blocks += _one(profile, reading.run)
        if reading.full:
            kernels = merged(reading.once(_kernels_of)[number])
            blocks += [*_kernels(kernels, reading), *_roofline(kernels, profile, reading)]
            blocks += _unfused(profile, reading)
    return blocks


def step_profiles(reading: Reading) -> list[StepProfile]:
    return profiles_of(reading.run)


def line_kernels(reading: Reading) -> dict[str, dict[int, tuple[float, int]]]:
    """By file and line: the time of a step in kernels that compute it, in ms, and how many these
    are. A kernel of several lines counts for each."""
    found: dict[str, dict[int, tuple[float, int]]] = defaultdict(dict)
    for kernels in reading.once(_kernels_of):
        for kernel in kernels:
            for file, line in {(at.file, at.line) for at in kernel.lines}:
                ms, number = found[file].get(line, (0.0, 0))
                found[file][line] = (ms + kernel.row.us / 1e3, number + 1)
    return found


def _kernels_of(reading: Reading) -> list[list[StepKernel]]:
    """Of each profile."""
    return kernels_by_profile(reading.run, reading.once(step_profiles))


def _one(profile: StepProfile, run: Run) -> list[Block]:
    if profile.bar is None:
        reason = profile.told.reason or "its record is not in the run"
        return [Paragraph(words(f"There is no profile: {reason}."))]
    bar, told = profile.bar, profile.told
    name = told.region.function if told.region is not None else "a compiled region"
    where, on_gpu = told.device or "the CPU", bool(told.device)
    title = f"{_ms(bar.step_us)} from one call of {name} to the next, on {where}"
    blocks: list[Block] = [
        *_causes(step_causes(run, profile), run.header.root),
        Paragraph(words(_verdict(profile, bar))),
        _bar(bar, title, on_gpu),
        Paragraph(words(_how(bar))),
    ]
    if bar.syncs:
        rows = tuple(
            (
                words(s.name),
                words(_at(s.at, run.header.root)),
                words(f"{s.calls / bar.steps:.3g}"),
                words(_ms(s.idle_us)),
                words(f"{s.idle_us / bar.profiled_us:.1%}"),
            )
            for s in bar.syncs[:_MOST_SYNCS]
        )
        head = ("the host waits in", "called at", "a step", "device idle after", "of the step")
        blocks.append(Table(head, rows, (2, 3, 4)))
    return blocks


def _kernels(kernels: list[StepKernel], reading: Reading) -> list[Block]:
    """The most expensive ones, with the lines they come from."""
    if not kernels:
        return []
    rows = tuple(
        (
            words(_kernel_name(kernel.row)),
            _first_line(kernel.lines, reading),
            words(f"{kernel.row.calls:.3g}"),
            words(_ms(kernel.row.us)),
            words(f"{kernel.row.share:.1%}"),
            words(shown_number(kernel.bytes) if kernel.bytes else ""),
            words(shown_number(kernel.row.flops) if kernel.row.flops else ""),
            words(f"{kernel.bound.by} {_percent(kernel.bound.share)}".strip()),
        )
        for kernel in kernels[:_MOST_KERNELS]
    )
    head = ("kernel", "from", "calls", "time", "share", "bytes", "FLOPs", "limit")
    blocks: list[Block] = [Table(head, rows, (2, 3, 4, 5, 6, 7), one_line=0)]
    longest = kernels[0]
    said = f"`{_kernel_name(longest.row)}` takes the longest{_limit(longest.bound)}."
    left = len(kernels) - _MOST_KERNELS
    rest = sum(kernel.row.share for kernel in kernels[_MOST_KERNELS:])
    more = (
        f" {count(left, 'more kernel')}, {rest:.1%} of the step: see `--json`." if left > 0 else ""
    )
    return [*blocks, note(f"{said}{more} Limits are in percent of what this machine can do.")]


def _unfused(profile: StepProfile, reading: Reading) -> list[Block]:
    """What Inductor did not fuse, in its own words."""
    if not profile.unfused:
        return []
    rows = tuple(
        (
            words(pair.first),
            _first_line([pair.at] if pair.at is not None else [], reading),
            words(pair.second),
            words(pair.reason),
            words(str(pair.count)),
        )
        for pair in profile.unfused[:_MOST_UNFUSED]
    )
    left = len(profile.unfused) - _MOST_UNFUSED
    more = f" {count(left, 'more reason')}: see `--json`." if left > 0 else ""
    said = "Kernels that use the same tensors and were not fused, with Inductor's reason for each"
    return [
        note(f"{said} pair; calls of libraries are never fused.{more}"),
        Table(("not fused", "from", "with", "because", "pairs"), rows, (4,)),
    ]


def _first_line(lines: list[UserLine], reading: Reading) -> Words:
    """A page has room for what it says."""
    if not lines:
        return ()
    file, line = lines[0].file, lines[0].line
    more = f" +{len(lines) - 1}" if len(lines) > 1 else ""
    parts = [Span(place(file, line, reading.root), target=line_target(file, line))]
    parts += words(more) if more else ()
    texts = reading.sources.lines(file) if reading.page else ()
    if 0 < line <= len(texts) and (text := texts[line - 1].strip()):
        short = text if len(text) <= _MOST_CODE else f"{text[:_MOST_CODE]}…"
        parts += [Span(" "), Span(short, "code")]
    return tuple(parts)


def _roofline(kernels: list[StepKernel], profile: StepProfile, reading: Reading) -> Iterator[Block]:
    """The drawing, or why there is none."""
    if not kernels:
        return
    roof = roof_of(profile)
    if roof is None:
        yield note("No roofline: what this machine can do was not measured.")
        return
    points = roof_points(kernels, roof, profile.told.matmul_precision)
    if points:
        yield _drawing(points, roof, reading)
    if undrawn := _undrawn(kernels, points):
        yield note(undrawn)
    again = _AGAIN if roof.has_tries_left else ""
    if faster := faster_than_roof(profile):
        fastest = max(faster, key=lambda row: row.flops / row.us)
        reached = shown_rate(fastest.flops / fastest.us * 1e6, "FLOP/s")
        yield note(
            f"The roof was measured too low: a call of `{_kernel_name(fastest)}` reaches "
            f"{reached}.{again}"
        )
    elif not roof.is_certain:
        yield note(
            "The roof may be too low: the machine was busy when it was measured, repeats differed "
            f"by {roof.spread:.0%}.{again}"
        )


def _drawing(points: list[RoofPoint], roof: Roof, reading: Reading) -> Block:
    limits = {point.ceiling for point in points}
    return Roofline(
        "Roofline",
        roof.bytes_per_second,
        tuple((name, roof.flops_per_second[name]) for name in sorted(limits)),
        tuple(_dot(point, reading) for point in points[:_MOST_DOTS]),
    )


def _dot(point: RoofPoint, reading: Reading) -> RooflineDot:
    row, lines = point.kernel.row, point.kernel.lines
    where = f", {place(lines[0].file, lines[0].line, reading.root)}" if lines else ""
    share = _percent(point.kernel.bound.share)
    numbers = (
        f"{row.share:.1%} of the step",
        f"{shown_number(point.flops_per_byte)} FLOP/byte",
        shown_rate(point.flops_per_second, "FLOP/s"),
        f"{share} of the roof" if share else "",
    )
    return RooflineDot(
        f"{_kernel_name(row)}{where}",
        ", ".join(filter(None, numbers)),
        point.flops_per_byte,
        point.flops_per_second,
        row.share,
    )


def _undrawn(kernels: list[StepKernel], points: list[RoofPoint]) -> str:
    drawn = points[:_MOST_DOTS]
    unknown = len(kernels) - len(points)
    said = []
    if unknown:
        share = sum(k.row.share for k in kernels) - sum(p.kernel.row.share for p in points)
        none = "No roofline" if not points else "Not drawn"
        said.append(
            f"{none}: of {count(unknown, 'kernel')}, {share:.1%} of the step, FLOPs, bytes "
            "or the roof are not known (FLOPs are counted of products of matrices, attention and "
            "convolutions)."
        )
    if len(points) > len(drawn):
        said.append(f"{count(len(points) - len(drawn), 'more kernel')} of less time not drawn.")
    return " ".join(said)


def _kernel_name(row: KernelRow) -> str:
    """The operator first, where a library has kernels of its own for it; their names, and those of
    C++, would fill a page."""
    bare = operator_name(row.name).replace("(anonymous namespace)::", "").removeprefix("void ")
    bare = bare.split("<")[0].split("(")[0].removeprefix("at::native::") or row.name
    operator = operator_name(row.operator)
    if operator and operator != bare:
        bare = f"{operator} ({bare})"
    return bare if len(bare) <= _MOST_NAME else f"{bare[: _MOST_NAME - 1]}…"


def _limit(bound: Bound) -> str:
    """As the end of a sentence."""
    if not bound.by:
        return ""
    near = "" if bound.share is None else f", {_percent(bound.share)} of the roof"
    return f": {bound.by} bound{near}"


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return f"{share:.0%}" if share >= 0.01 else "<1%"


def _causes(causes: list[StepCause], root: str) -> list[Block]:
    """The first one in full, the others in a line each."""
    if not causes:
        return []
    first, *others = causes
    blocks: list[Block] = [Paragraph(prose(f"{_cause(first, root)} {first.remedy}"), "Why:")]
    blocks += [Paragraph(prose(_cause(each, root)), "Also:") for each in others[:_MOST_CAUSES]]
    return blocks


def _cause(told: StepCause, root: str) -> str:
    where = f" ({_at(told.lines[0], root)})" if told.lines else ""
    return f"{_cost(told)}: {told.why}{where}."


def _cost(told: StepCause) -> str:
    """Its time, and what would be saved without it, where that is another."""
    if told.us < _ALIKE * told.saves_us:
        return f"The step would be about {_about(told.saves_us)} shorter without it"
    own = f"{told.share:.0%} of the step, {_ms(told.us)}"
    if abs(told.saves_us - told.us) <= _ALIKE * told.us:
        return own
    if told.saves_us < _ALIKE * told.us:
        return f"{own}, hardly any of which would be saved without it"
    return f"{own}; without it the step would be about {_about(told.saves_us)} shorter"


def _at(at: UserLine | None, root: str) -> str:
    if at is None:
        return ""
    where = place(at.file, at.line, root)
    return where if at.exact else f"{where}, in {at.function}"


def _bar(bar: StepBar, title: str, on_gpu: bool) -> Block:
    """On a CPU there is no second clock: nothing is idle."""
    parts = _shown(bar, on_gpu)
    busy = sum(part.part in _DEVICE for part in parts)
    rows = tuple(_row(part, on_gpu) for part in parts)
    return Measures(title, rows, idle_from=busy if on_gpu else None)


def _shown(bar: StepBar, on_gpu: bool) -> list[StepTime]:
    """What a device does, then why it does nothing; the longest first."""
    parts = [part for part in bar.parts if part.share >= _LEAST]
    return sorted(parts, key=lambda part: (on_gpu and part.part not in _DEVICE, -part.us))


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


def _about(us: float) -> str:
    """An estimate has no third digit."""
    return _ms(float(f"{us:.2g}"))


def _ms(us: float) -> str:
    return f"{us / 1e3:.3g} ms" if us >= 10 else f"{us:.3g} µs"
