"""A device as blocks: what it takes, under the headings of its file;
and the runs that were checked against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.preflight import preflight
from compilescope.knowledge.findings.violations import ViolationFinding, violations
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
    """What devices would not support of the graphs that runs recorded, as `preflight` says it."""
    return [
        RefusedRun(run.header.run, program, _unnamed(found), _place(found, run))
        for program, run in runs
        for report in preflight(run, digest(run), devices)
        for found in (*report.violations, *report.unknown)
    ]


def _unnamed(found: ViolationFinding) -> ViolationFinding:
    """A check names the function that was compiled; here programs are told apart."""
    return msgspec.structs.replace(found, model="")


def _place(found: ViolationFinding, run: Run) -> str:
    return place(found.file, found.line, run.header.root) if found.file else ""


def devices_table(
    devices: Sequence[Device], violations: Sequence[RefusedRun], device_url: _Url
) -> Table:
    """Those that are shipped, then those that only runs know."""
    by_device: dict[str, list[RefusedRun]] = {}
    for each in violations:
        by_device.setdefault(each.finding.device, []).append(each)
    titles = {device.name: device.title for device in devices}
    names = [*titles, *sorted(set(by_device) - set(titles))]
    rows = tuple(
        (
            words(Span(name, url=device_url(name))),
            words(titles[name] if name in titles else Span("a device file of yours", "dim")),
            *_counts(by_device.get(name, [])),
        )
        for name in names
    )
    columns = ("device", "what it is", "errors", "warnings", "unknown", "models", "runs")
    return Table(columns, rows, (2, 3, 4, 5, 6))


def examples_table(devices: Sequence[Device], device_url: _Url) -> Table:
    """What there is to choose from: nothing was checked, so nothing is counted."""
    rows = tuple(
        (words(Span(device.name, url=device_url(device.name))), words(device.title))
        for device in devices
    )
    return Table(("device", "what it is"), rows)


def _counts(members: Sequence[RefusedRun]) -> tuple[Words, ...]:
    severities = Counter[str](each.finding.severity for each in members)
    return (
        *(_number(severities[name], _STYLES[name]) for name in _STYLES),
        _number(len({each.model for each in members}), "plain"),
        _number(len({each.run for each in members}), "plain"),
    )


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
