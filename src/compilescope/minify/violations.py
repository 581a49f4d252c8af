"""Repro scripts for graphs that a strict backend refused, each proven in a fresh process.

A script that does not lead to the same violations there is thrown away, and the error says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import torch

from compilescope.backends.checking import ConstraintViolation
from compilescope.backends.mock.backend import Judged, Repro
from compilescope.backends.mock.configuration import Configuration
from compilescope.backends.mock.constraint_code import configuration_code
from compilescope.backends.mock.wording import place
from compilescope.minify.script.setting import BackendSource, Setting, Shown
from compilescope.minify.script.verifying import run_fresh, write_verified
from compilescope.minify.script.writing import script_text
from compilescope.settings import read_settings
from compilescope.torchapi.compiling.modes import changed_settings
from compilescope.torchapi.reproducing.constants import Unwritable
from compilescope.torchapi.reproducing.writing import write_graph

FOLDER = "compilescope-repros"
_MOST_NAMED = 10
_SYMBOL = re.compile(r"\b[suz]\d+\b")
_NUMBER = re.compile(r"(?<!dimension )\b\d+(\.\d+)?\b")
_WORD = re.compile(r"[^a-z0-9]+")
_known: dict[tuple[object, ...], Repro] = {}
"""A fresh process takes seconds: one for each set of violations."""


class Fact(msgspec.Struct, frozen=True, array_like=True, order=True):
    """What must come again for a repro to be one."""

    rule: str
    stage: str
    op: str
    found: str


def verified_repro(judged: Judged) -> Repro:
    """Write it, run it, and say what became of it."""
    found = [each for graph in judged.checked for each in graph.errors]
    places = frozenset((each.file, each.line) for each in found)
    key = (judged.backend, judged.configuration.name, frozenset(facts(found)), places)
    known = _known.get(key)
    if known is None or (known.path is not None and not os.path.exists(known.path)):
        known = _known[key] = _made(judged, found)
    return known


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


def violation_script(judged: Judged) -> str:
    """Unwritable where the graph or a constraint has no source of its own."""
    written = write_graph(judged.module)
    setting = Setting(
        backend=mock_source(judged.backend, judged.configuration),
        options=("dynamic=True",) if written.loose else (),
        contexts=judged.contexts,
        settings=tuple(changed_settings()),
        model=judged.checked[0].model,
    )
    return script_text(written.graph, setting, shown(judged), torch_version=torch.__version__)


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


def shown(judged: Judged, wanted: Iterable[Fact] | None = None, also: Iterable[Fact] = ()) -> Shown:
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
    expected = sorted(facts(found) if wanted is None else wanted)
    return Shown(
        kind="violation",
        expected=tuple((fact.rule, fact.stage, fact.op, fact.found) for fact in expected),
        title=f"{first.device} does not support this graph{of}.",
        lines=tuple(lines),
        also=tuple((fact.rule, fact.stage, fact.op, fact.found) for fact in sorted(also)),
    )


def _made(judged: Judged, found: list[ConstraintViolation]) -> Repro:
    try:
        text = violation_script(judged)
    except Unwritable as reason:
        return Repro(f"No repro: {reason}.")
    wanted = facts(found)
    made = write_verified(
        _path(judged, text),
        text,
        timeout_s=judged.configuration.repro_timeout_s,
        check=lambda script, timeout_s: _verify(script, wanted, timeout_s),
    )
    return Repro(made.words, str(made.path) if made.path else None)


def _path(judged: Judged, text: str) -> Path:
    given = judged.configuration.repro
    run = read_settings().run_dir
    folder = given if isinstance(given, Path) else (run / "repros" if run else Path(FOLDER))
    model = _WORD.sub("-", judged.checked[0].model.lower()).strip("-") or "graph"
    return folder / f"{model[:40]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"


def _verify(script: Path, wanted: set[Fact], timeout_s: float) -> str:
    """Why it is no repro; empty if it is one."""
    out = script.with_suffix(".json")
    command = [sys.executable, "-m", "compilescope.minify.script.replay", str(script), str(out)]
    try:
        status, said = run_fresh(command, timeout_s)
        if status is None:
            return f"it could not be verified within {timeout_s:g} s"
        if status:
            return f"the script failed in a fresh process ({said[-1] if said else 'no message'})"
        again = set(msgspec.json.decode(out.read_bytes(), type=list[Fact]))
    except (OSError, msgspec.DecodeError):
        return "the fresh process gave no result"
    finally:
        out.unlink(missing_ok=True)
    if again == wanted:
        return ""
    lost, other = wanted - again, again - wanted
    return (
        f"in a fresh process the script led to other violations ({len(lost)} are missing, "
        f"{len(other)} are new)"
    )
