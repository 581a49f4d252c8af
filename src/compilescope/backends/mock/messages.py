"""What a mock backend says to its user: what is wrong with a graph, and which device refuses it."""

from __future__ import annotations

import logging
import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from types import FrameType

from compilescope.backends.checks import CheckedGraph, ConstraintViolation
from compilescope.backends.mock.configuration import Configuration
from compilescope.instrument.torchapi.compilation.refusals import BackendRefusal
from compilescope.knowledge.rules.constraints.layout import layout_words
from compilescope.knowledge.rules.constraints.memory import memory_words
from compilescope.knowledge.rules.hardware.sizes import rule_words
from compilescope.record.device import Device

# Chosen: columns of a message that a terminal of eighty shows whole, and of what begins its lines.
_WIDTH = 79
_INDENT = 3
_LABEL = 9
_MOST_ITEMS = 200
"""Chosen: an error that a terminal can show; the error's `violations` has all of them."""
_STAGES = {
    "dynamo": "graph",
    "aot_forward": "forward graph",
    "aot_backward": "backward graph",
    "aot_inference": "inference graph",
}
_CODE = re.compile(r"`[^`\n]{1,60}`")
_GLUE = "\x00"
_Alike = dict[tuple[object, ...], list[ConstraintViolation]]


def refusal_text(checked: Sequence[CheckedGraph], repro: str = "") -> str:
    """All that is wrong, then what could not be judged, then where the repro is."""
    errors = [each for graph in checked for each in graph.errors]
    parts = [_headline(checked, errors), *_items(errors)]
    parts += _others("Warnings", [e for graph in checked for e in graph.warnings])
    parts += _others("Not determined", [e for graph in checked for e in graph.unknown])
    if repro:
        parts.append(_wrapped(repro, ""))
    return "\n\n".join(parts)


def warning_text(checked: CheckedGraph) -> str:
    found = [*checked.errors, *checked.warnings]
    parts = [_headline([checked], found), *_items(found)]
    parts += _others("Not determined", checked.unknown)
    return "\n\n".join(parts)


def _headline(checked: Sequence[CheckedGraph], found: Sequence[ConstraintViolation]) -> str:
    first = checked[0]
    model = f" of {first.model}" if first.model else ""
    stages = [_STAGES.get(graph.stage, graph.stage) for graph in checked if graph.found]
    graphs = " and ".join(dict.fromkeys(stages)) or "graph"
    if not found:
        return f"Whether {first.device} supports the {graphs}{model} can't be determined."
    errors = sum(each.severity == "error" for each in found)
    if not errors:
        return f"{first.device} supports the {graphs}{model}, with {_count(len(found), 'warning')}."
    return f"{first.device} does not support the {graphs}{model}: {_count(errors, 'violation')}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _items(found: Iterable[ConstraintViolation]) -> list[str]:
    groups = list(_alike(found).values())
    items = [_item(number, group) for number, group in enumerate(groups[:_MOST_ITEMS], 1)]
    if len(groups) > _MOST_ITEMS:
        items.append(f"and {len(groups) - _MOST_ITEMS} more: see the error's `violations`.")
    return items


def _alike(found: Iterable[ConstraintViolation]) -> _Alike:
    """Layers that repeat break the same rule on the same line."""
    groups: _Alike = {}
    for each in found:
        key = (each.rule, each.stage, each.op, each.found, each.allowed, each.file, each.line)
        groups.setdefault((*key, each.remedy), []).append(each)
    return groups


def _item(number: int, alike: list[ConstraintViolation]) -> str:
    first = alike[0]
    times = f", {len(alike)} times" if len(alike) > 1 else ""
    stage = "" if first.stage == "dynamo" else f" in the {_STAGES.get(first.stage, first.stage)}"
    mild = ", warning" if first.severity == "warning" else ""
    lines = [f"{number}. {first.rule}: {first.op}{stage}{times}{mild}"]
    lines += _labelled("at", place(first))
    if first.source:
        lines.append(" " * (_INDENT + _LABEL + 2) + _short(first.source, _WIDTH - 14))
    lines += _labelled("found", first.found)
    lines += _labelled("allowed", first.allowed)
    lines += _labelled("try", first.remedy)
    return "\n".join(lines)


def _others(title: str, found: Sequence[ConstraintViolation]) -> list[str]:
    groups = list(_alike(found).values())
    if not groups:
        return []
    lines = [f"{title}:"]
    for alike in groups[:_MOST_ITEMS]:
        first = alike[0]
        times = f" ({len(alike)} times)" if len(alike) > 1 else ""
        said = f"{place(first)}: {first.rule}, {first.op}: {first.found}; {first.allowed}{times}"
        lines.append(_wrapped(f"- {said}", "  "))
    if len(groups) > _MOST_ITEMS:
        lines.append(f"- and {len(groups) - _MOST_ITEMS} more")
    return ["\n".join(lines)]


def place(violation: ConstraintViolation) -> str:
    """`model.py:12 in forward`, from where the program was started."""
    if violation.line is None:
        return "unknown location"
    return f"{_relative(violation.file)}:{violation.line} in {violation.function}"


def _relative(file: str) -> str:
    try:
        shown = os.path.relpath(file)
    except ValueError:  # Another drive.
        return file
    return file if shown.startswith("..") else shown


def _labelled(label: str, text: str) -> list[str]:
    if not text:
        return []
    lead = " " * _INDENT + label.ljust(_LABEL)
    rest = " " * len(lead)
    wrapped = _lines(text, _WIDTH - len(lead))
    return [(rest if number else lead) + line for number, line in enumerate(wrapped)]


def _wrapped(text: str, indent: str) -> str:
    return f"\n{indent}".join(_lines(text, _WIDTH - len(indent)))


def _lines(text: str, width: int) -> list[str]:
    """What stands in backquotes is code, and stays in one line."""
    whole = _CODE.sub(lambda code: code[0].replace(" ", _GLUE), text)
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


log = logging.getLogger(__package__)
_MOST_NAMED = 4
"""Operators in a sentence. Chosen: a sentence with four names can still be read."""
_said: set[str] = set()


def say_default(configuration: Configuration, backend: str) -> None:
    """Once in a process: a device that nobody chose must not refuse graphs in silence."""
    device = configuration.device
    if not configuration.is_default or device is None or device.name in _said:
        return
    _said.add(device.name)
    log.warning("%s", notice(device, backend))


def notice(device: Device, backend: str) -> str:
    rules = "\n".join(f"  {kind:<9}  {words}" for kind, words in _rules(device).items())
    return (
        f"{backend} checks graphs against the {device.name} device, because no device or "
        f"constraints were given:\n{rules}\n"
        f"All of it: `compilescope devices show {device.name}`. To check other rules, pass "
        'device="npu-a" or constraints=[...],\nor set MOCK_ALIGNMENT, '
        "MOCK_MAX_MEMORY or MOCK_MAX_PEAK_MEMORY."
    )


def _rules(device: Device) -> dict[str, str]:
    cases = [f"{case.op} when {case.when}" for case in device.ops.conditions]
    denied = [*cases, *device.ops.denied]
    shape = [f"at most {device.shapes.max_rank} dimensions"]
    shape += [rule_words(rule) for rule in device.shapes.alignment]
    laid = device.layout
    layout = layout_words(laid.formats, laid.dense_rows, laid.reordered_rows)
    if laid.reordered_rows == "copied":
        layout += "; in another order: a warning"
    memory = device.memory
    return {
        "dtype": ", ".join(device.dtypes.supported),
        "shape": ", ".join(shape),
        "layout": layout,
        "memory": memory_words(memory.peak_bytes, memory.tensor_bytes) or "any",
        "operators": f"all except {', '.join(denied[:_MOST_NAMED])} and "
        f"{len(denied) - _MOST_NAMED} more",
    }


class ConstraintError(BackendRefusal):
    """A device does not take a graph. The message names everything that it refuses.

    It is also a `BackendCompilerFailed`, as every error of a backend is to torch.
    """

    def __init__(
        self,
        checked: Sequence[CheckedGraph],
        *,
        backend: str,
        repro: str = "",
        repro_path: str | None = None,
        repro_paths: Sequence[str] = (),
        frame: FrameType | None = None,
    ) -> None:
        super().__init__(refusal_text(checked, repro), backend, frame)
        self.checked = tuple(checked)
        self.repro_path = repro_path
        """The script that reproduces it; None where there is none."""
        self.repro_paths = tuple(dict.fromkeys(repro_paths))
        """All scripts: one for each kind of violation."""

    @property
    def violations(self) -> list[ConstraintViolation]:
        return [each for graph in self.checked for each in graph.errors]

    @property
    def warnings(self) -> list[ConstraintViolation]:
        return [each for graph in self.checked for each in graph.warnings]

    @property
    def unknown(self) -> list[ConstraintViolation]:
        """What could not be judged: neither refused nor passed."""
        return [each for graph in self.checked for each in graph.unknown]


ConstraintError.__module__ = "compilescope"
