"""What identifies a violation, so that it is recognised again in a smaller graph or a new process.

And how it is told in the script that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from compilescope.backends.checks import ConstraintViolation
from compilescope.backends.mock.backend import CheckedModule
from compilescope.backends.mock.configuration import Configuration
from compilescope.backends.mock.constraint_code import configuration_code
from compilescope.backends.mock.messages import place
from compilescope.minify.script.spec import BackendSource, Setting, Shown
from compilescope.torchapi.compilation.current import changed_settings
from compilescope.torchapi.repros.graph_writer import GraphAndInputs

_MOST_NAMED = 10
"""Violations that are listed. Chosen: the rest is counted."""
_SYMBOL = re.compile(r"\b[suz]\d+\b")
_NUMBER = re.compile(r"(?<!dimension )\b\d+(\.\d+)?\b")


class Fact(msgspec.Struct, frozen=True, array_like=True, order=True):
    """What must come again for a repro to be one."""

    rule: str
    stage: str
    op: str
    found: str


def facts(found: Iterable[ConstraintViolation]) -> set[Fact]:
    """Violations without what differs from script to script: lines, names of inputs, of symbols."""
    return {
        Fact(
            each.rule,
            each.stage,
            "input" if each.op.startswith(("input ", "parameter ")) else each.op,
            _SYMBOL.sub("s", each.found),
        )
        for each in found
    }


def loosely(fact: tuple[str, ...]) -> tuple[str, ...]:
    """Without sizes: a smaller graph breaks the same rule with smaller tensors."""
    rule, stage, op, found = fact
    return rule, stage, op, re.sub(r"#(, #)+", "#", _NUMBER.sub("#", found))


def loosened(found: Iterable[Fact]) -> set[tuple[str, ...]]:
    return {loosely(msgspec.structs.astuple(fact)) for fact in found}


def setting_of(judged: CheckedModule, written: GraphAndInputs) -> Setting:
    """How its graph is compiled. Unwritable where a constraint has no source of its own."""
    return Setting(
        backend=mock_source(judged.backend, judged.configuration),
        options=("dynamic=True",) if written.loose else (),
        contexts=judged.contexts,
        settings=tuple(changed_settings()),
        model=judged.checked[0].model,
    )


def mock_source(backend: str, configuration: Configuration) -> BackendSource:
    """A mock backend by the name that it has in `compilescope`."""
    chosen = configuration_code(configuration)
    arguments = ", ".join([*chosen.arguments, "strict=True", "repro=False"])
    return BackendSource(
        expression=f"compilescope.{backend}({arguments})",
        name=backend,
        imports=("import compilescope", *(line for line in chosen.imports.values() if line)),
        folders=tuple(chosen.folders),
        definitions=tuple(chosen.definitions),
    )


def shown(judged: CheckedModule, wanted: Iterable[Fact], also: Iterable[Fact] = ()) -> Shown:
    """`wanted` must come again, `also` may."""
    found = [each for graph in judged.checked for each in graph.errors]
    first = judged.checked[0]
    of = f" of {first.model}" if first.model else ""
    lines = [
        f"- {place(each)}: {each.rule}, {each.op}: {each.found}; allowed: {each.allowed}"
        for each in found[:_MOST_NAMED]
    ]
    if len(found) > _MOST_NAMED:
        lines.append(f"- and {len(found) - _MOST_NAMED} more")
    expected = sorted(wanted)
    return Shown(
        kind="violation",
        expected=tuple((fact.rule, fact.stage, fact.op, fact.found) for fact in expected),
        title=f"{first.device} does not support this graph{of}.",
        lines=tuple(lines),
        also=tuple((fact.rule, fact.stage, fact.op, fact.found) for fact in sorted(also)),
    )
