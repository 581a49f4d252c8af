"""A device as blocks: what it takes, under the headings of its file;
and the runs that were checked against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from compilescope.knowledge.analysis.device_checks import DeviceCheck, device_checks
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.preflight import preflight
from compilescope.knowledge.findings.violations import ViolationFinding, violations
from compilescope.record.bodies import Violation
from compilescope.record.byte_counts import shown_bytes
from compilescope.record.device import ALL_DIMS, Alignment, Device
from compilescope.record.run import Run
from compilescope.report.blocks import (
    Block,
    Facts,
    Heading,
    Item,
    Paragraph,
    Span,
    Style,
    Table,
    Words,
    prose,
    words,
)
from compilescope.report.places import count, place

_Url = Callable[[str], str]
_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "unknown": "dim"}
_OUTCOMES: dict[str, Style] = {"pass": "good", "fail": "bad", "unknown": "dim"}
_WORDS = {"pass": "passed", "fail": "failed", "unknown": "unknown"}
# Chosen: kinds of refusals, and runs that have them; the rest is counted.
_MOST_KINDS = 20
_MOST_RUNS = 8
_Row = tuple[str, Words]
_ANY = words(Span("any", "dim"))


def device_blocks(device: Device) -> list[Block]:
    """Everything that it asks for; what it leaves open says so."""
    blocks: list[Block] = [Paragraph(prose(device.note))] if device.note else []
    for title, rows in (
        ("Number formats", _dtypes(device)),
        ("Sizes", _shapes(device)),
        ("Layout", _layout(device)),
        ("Memory", _memory(device)),
        ("Operators", _ops(device)),
    ):
        blocks += [Heading(title), Facts(tuple(rows))]
    return blocks


def _dtypes(device: Device) -> Iterator[_Row]:
    dtypes = device.dtypes
    yield "supported", _names(dtypes.supported)
    for op, names in dtypes.per_op.items():
        yield op, _names(names)
    if dtypes.integer_width is not None:
        fate = {"narrowed": "silently narrowed", "refused": "rejected"}[dtypes.wider_integers]
        yield "integers", words(f"up to {dtypes.integer_width} bits; wider ones are {fate}")


def _shapes(device: Device) -> Iterator[_Row]:
    shapes = device.shapes
    yield "dynamic", words("supported" if shapes.dynamic else "not supported")
    yield "rank", _most(shapes.max_rank)
    yield "size", _most(shapes.max_size)
    for rule in shapes.alignment:
        yield f"multiples of {rule.multiple}", _alignment(rule)


def _alignment(rule: Alignment) -> Words:
    fate = "padded" if rule.otherwise == "padded" else "rejected"
    text = f"{_dims(rule)} of "
    ops = [Span(", ".join(rule.ops), "code")] if rule.ops else ["every tensor"]
    return words(text, *ops, f"; others are {fate}")


def _dims(rule: Alignment) -> str:
    if rule.dims == ALL_DIMS:
        return "all dimensions, except those of size 1,"
    which = "dimension" if len(rule.dims) == 1 else "dimensions"
    return f"{which} {' and '.join(map(str, rule.dims))}"


def _layout(device: Device) -> Iterator[_Row]:
    layout = device.layout
    yield "strides", words(" or ".join(layout.formats)) if layout.formats else _ANY
    if layout.dense_rows:
        yield "rows", words("dense rows may start anywhere, as in a slice")
        if layout.reordered_rows == "copied":
            yield (
                "order",
                words("rows in another order, as heads before positions, are copied: a warning"),
            )
    if layout.max_rank is not None:
        yield "rank", words(f"contiguous above {layout.max_rank}")
    if layout.inner_stride_one:
        yield "last", words("the last dimension must be dense")
    if not layout.overlapping:
        yield "sharing", words("elements must not share memory")


def _memory(device: Device) -> Iterator[_Row]:
    for label, limit in (
        ("a graph", device.memory.peak_bytes),
        ("a tensor", device.memory.tensor_bytes),
    ):
        yield label, words(f"at most {shown_bytes(limit)}") if limit is not None else _ANY


def _ops(device: Device) -> Iterator[_Row]:
    ops = device.ops
    yield "supported", _names(ops.allowed)
    if ops.denied:
        yield "unsupported", _names(ops.denied)
    for condition in ops.conditions:
        reason = f": {condition.reason}" if condition.reason else ""
        yield "unsupported", words(Span(f"{condition.op} when {condition.when}", "code"), reason)


def _names(names: Sequence[str]) -> Words:
    return words(Span(", ".join(names), "code")) if names else _ANY


def _most(limit: int | None) -> Words:
    return words(f"at most {limit}") if limit is not None else _ANY


# What devices refused across runs: by device, and for one device by model.


class RefusedRun(NamedTuple):
    """A violation, where it was, and in which run."""

    run: str
    program: str
    finding: ViolationFinding
    place: str

    @property
    def model(self) -> str:
        return self.finding.model or self.program


def refused(runs: Iterable[tuple[str, Run]], device: str = "") -> list[RefusedRun]:
    """Of runs with the names of their programs: every violation, or those of one device."""
    found = []
    for program, run in runs:
        for finding in violations(run):
            if not device or finding.device == device:
                found.append(RefusedRun(run.header.run, program, finding, _place(finding, run)))
    return found


def checked(runs: Iterable[tuple[str, Run]], devices: Sequence[Device]) -> list[RefusedRun]:
    """What devices would not support of the graphs that runs recorded, as `preflight` says it.

    A run that tells itself what a device refused, place by place, is not asked again.
    """
    return [
        RefusedRun(run.header.run, program, _unnamed(found), _place(found, run))
        for program, run in runs
        for report in preflight(run, digest(run), _not_told(run, devices))
        for found in (*report.violations, *report.unknown)
    ]


def _not_told(run: Run, devices: Sequence[Device]) -> list[Device]:
    told = {body.device for _, body in run.of(Violation)}
    return [device for device in devices if device.name not in told]


def _unnamed(found: ViolationFinding) -> ViolationFinding:
    """A check names the function that was compiled; here programs are told apart."""
    return msgspec.structs.replace(found, model="")


def _place(found: ViolationFinding, run: Run) -> str:
    return place(found.file, found.line, run.header.root) if found.file else ""


class CheckedRun(NamedTuple):
    """A run, and how its graphs fared on a device."""

    run: str
    program: str
    check: DeviceCheck


def checked_runs(runs: Iterable[tuple[str, Run]], device: str = "") -> list[CheckedRun]:
    """Of runs with the names of their programs: every check that they tell of, or one device's."""
    return [
        CheckedRun(run.header.run, program, check)
        for program, run in runs
        for check in device_checks(run)
        if not device or check.device == device
    ]


def devices_table(
    checks: Sequence[CheckedRun], titles: Mapping[str, str], device_url: _Url
) -> Table:
    """Those that runs were checked against, the one that was checked last first."""
    by_device: dict[str, list[CheckedRun]] = {}
    for each in checks:
        by_device.setdefault(each.check.device, []).append(each)
    rows = tuple(
        (
            words(Span(name, url=device_url(name))),
            words(_title(titles.get(name, ""), members)),
            *_counts(members),
        )
        for name, members in by_device.items()
    )
    columns = (
        "device",
        "what it is",
        "passed",
        "failed",
        "unknown",
        "errors",
        "warnings",
        "models",
    )
    return Table(columns, rows, (2, 3, 4, 5, 6, 7))


def _title(shipped: str, members: Sequence[CheckedRun]) -> str | Span:
    told = (each.check.title for each in members if each.check.title)
    return shipped or next(told, Span("a device file of yours", "dim"))


def examples_table(devices: Sequence[Device], device_url: _Url) -> Table:
    """What there is to choose from: nothing was checked, so nothing is counted."""
    rows = tuple(
        (words(Span(device.name, url=device_url(device.name))), words(device.title))
        for device in devices
    )
    return Table(("device", "what it is"), rows)


def _counts(members: Sequence[CheckedRun]) -> tuple[Words, ...]:
    """Runs by how they fared, then what the device said of their newest graphs."""
    outcomes = Counter[str](each.check.outcome for each in members)
    newest = {each.program: each.check for each in reversed(members)}.values()
    models = {name for each in members for name in each.check.models or (each.program,)}
    return (
        *(_number(outcomes[name], style) for name, style in _OUTCOMES.items()),
        _number(sum(check.errors for check in newest), "bad"),
        _number(sum(check.warnings for check in newest), "warn"),
        _number(len(models), "plain"),
    )


def checks_table(checks: Sequence[CheckedRun], run_url: _Url) -> Table:
    """Each run that was checked against a device, the newest first."""
    rows = tuple(
        (
            words(Span(each.run, url=run_url(each.run))),
            words(each.program),
            words(Span(_WORDS[each.check.outcome], _OUTCOMES[each.check.outcome])),
            words("-" if each.check.graphs is None else str(each.check.graphs)),
            _number(each.check.errors, "bad"),
            _number(each.check.warnings, "warn"),
            _number(each.check.unknown, "dim"),
        )
        for each in checks
    )
    columns = ("run", "program", "outcome", "graphs", "errors", "warnings", "unknown")
    return Table(columns, rows, (3, 4, 5, 6))


def _number(amount: int, style: Style) -> Words:
    return words(Span(str(amount), style) if amount else Span("-", "dim"))


def model_items(violations: Sequence[RefusedRun], run_url: _Url) -> list[Block]:
    """One for each model or program, the one with the most errors first."""
    groups: dict[str, list[RefusedRun]] = {}
    for each in violations:
        groups.setdefault(each.model, []).append(each)
    ordered = sorted(groups.items(), key=lambda group: (-_errors(group[1]), group[0]))
    return [
        _item(number, model, members, run_url) for number, (model, members) in enumerate(ordered, 1)
    ]


def _errors(members: Sequence[RefusedRun]) -> int:
    return sum(each.finding.severity == "error" for each in members)


def _item(number: int, model: str, members: Sequence[RefusedRun], run_url: _Url) -> Item:
    runs = list(dict.fromkeys(each.run for each in members))
    unclear = sum(each.finding.severity == "unknown" for each in members)
    found = count(len(members) - unclear, "violation")
    more = f" and {count(unclear, 'inconclusive check')}" if unclear else ""
    spans: list[str | Span] = [f"{found}{more} in {count(len(runs), 'run')}: "]
    for at, run in enumerate(runs[:_MOST_RUNS]):
        spans += [", "] if at else []
        spans.append(Span(run, url=run_url(run)))
    rest = len(runs) - _MOST_RUNS
    spans.append(f" and {rest} more" if rest > 0 else "")
    errors = _errors(members)
    style: Style = "bad" if errors else "warn"
    right = Span(count(errors, "error") if errors else "no errors", style)
    blocks: tuple[Block, ...] = (Paragraph(words(*spans)), *_kinds(members))
    return Item(str(number), words(Span(model or "unnamed", "strong")), words(right), blocks)


def _kinds(members: Sequence[RefusedRun]) -> list[Block]:
    """The same refusal of the same line once, with how often."""
    kinds: dict[tuple[str, ...], list[RefusedRun]] = {}
    for each in members:
        said = each.finding
        key = (said.severity, said.rule or "", said.op, said.allowed, each.place)
        kinds.setdefault(key, []).append(each)
    ordered = sorted(kinds.items(), key=lambda kind: (kind[0][0] != "error", -len(kind[1])))
    rows = tuple(
        (
            words(Span(f"{rule} {severity}", _STYLES.get(severity, "plain"))),
            words(Span(op, "code")),
            words(f"found {_found(alike)}; allowed {allowed}"),
            words(where or "-"),
            prose(alike[0].finding.first_step),
            words(str(len(alike))),
        )
        for (severity, rule, op, allowed, where), alike in ordered[:_MOST_KINDS]
    )
    columns = ("constraint", "operation", "why", "line", "try", "times")
    left = len(ordered) - _MOST_KINDS
    more = [Paragraph(words(Span(f"and {left} more kinds", "dim")))] if left > 0 else []
    return [Table(columns, rows, (5,)), *more]


def _found(alike: Sequence[RefusedRun]) -> str:
    different = list(dict.fromkeys(each.finding.found for each in alike))
    return different[0] + (f" and {len(different) - 1} more" if different[1:] else "")
