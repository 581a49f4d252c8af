"""Repro scripts for graphs that a strict backend refused: one for each kind of violation.

Each is reduced to the few calls that show it, and then run in a fresh process. One that does not
lead to its violation there is thrown away, and the error says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch

from compilescope.backends.checks import ConstraintViolation
from compilescope.backends.mock.backend import CheckedModule, MadeRepros, ReproPart
from compilescope.minify.graph.candidate import op_count
from compilescope.minify.graph.record import FailingGraph, write_record
from compilescope.minify.script.spec import Setting
from compilescope.minify.violations.kinds import Fact, facts, loosely, loosened, setting_of, shown
from compilescope.minify.violations.worker import (
    DRAFT,
    REPLAYED,
    Replayed,
    make_scripts,
    read_reduced,
    read_replayed,
)
from compilescope.model.written_graph import WrittenGraph, names_used
from compilescope.settings import read_settings
from compilescope.torchapi.repros.constants import Unwritable
from compilescope.torchapi.repros.graph_writer import write_graph

FOLDER = "compilescope-repros"
_REDUCE_S = 3.0
"""For all the violations of one graph together, without the time that torch needs to start. Chosen:
nobody asked for these scripts by themselves, so they may not hold up the run."""
_MOST_SCRIPTS = 10
"""For one graph: the most kinds of violations that get a script. Chosen: all of them
share `_REDUCE_S`, and each script costs a run."""
_TOO_MANY = f"only the first {_MOST_SCRIPTS} kinds of violations of a graph get one"
_WORD = re.compile(r"[^a-z0-9]+")
_Key = tuple[object, ...]
_known: dict[_Key, ReproPart] = {}
"""A fresh process takes seconds: a violation that was seen before has its script."""


@dataclass(frozen=True)
class _Wanted:
    """Violations of one kind: the same rule, the same operator, other sizes at most."""

    key: _Key
    violations: tuple[ConstraintViolation, ...]

    @property
    def fact(self) -> Fact:
        (found,) = facts(self.violations[:1])
        return found


def verified_repro(judged: CheckedModule) -> MadeRepros:
    """Write them, run them, and say what became of them."""
    found = [each for graph in judged.checked for each in graph.errors]
    try:
        written = write_graph(judged.module)
        setting = setting_of(judged, written)
    except Unwritable as reason:
        part = ReproPart(tuple(found), reason=str(reason))
        return MadeRepros(f"No repro: {reason}.", parts=(part,))
    wanted = _kinds(found, setting, _folder(judged.configuration.repro))
    new = [each for each in wanted if not _is_there(_known.get(each.key))]
    for each in new[_MOST_SCRIPTS:]:
        _known[each.key] = ReproPart(each.violations, reason=_TOO_MANY)
    if new:
        making = _Making(judged, written.graph, setting, facts(found))
        _known.update(making.make(new[:_MOST_SCRIPTS]))
    parts = tuple(_as_part(_known[each.key], each) for each in wanted)
    path = next((part.path for part in parts if part.path), None)
    return MadeRepros(_words(parts), path, parts)


def _kinds(found: Iterable[ConstraintViolation], setting: Setting, folder: Path) -> list[_Wanted]:
    """What differs in the place, the model or the backend's constraints is not the same."""
    groups: dict[tuple[str, ...], list[ConstraintViolation]] = {}
    for each in found:
        (fact,) = facts([each])
        groups.setdefault(loosely(msgspec.structs.astuple(fact)), []).append(each)
    return [
        _Wanted(
            (
                kind,
                frozenset((each.file, each.line, each.source, each.found) for each in alike),
                setting,
                folder,
            ),
            tuple(alike),
        )
        for kind, alike in groups.items()
    ]


def _is_there(part: ReproPart | None) -> bool:
    return part is not None and (part.path is None or os.path.exists(part.path))


def _as_part(known: ReproPart, wanted: _Wanted) -> ReproPart:
    return ReproPart(wanted.violations, known.path, known.reason, known.ops, known.ops_before)


def _words(parts: Sequence[ReproPart]) -> str:
    """For the end of the error's message."""
    paths = list(dict.fromkeys(part.path for part in parts if part.path))
    if not paths:
        return f"No repro: {parts[0].reason}." if parts else ""
    if len(paths) == 1:
        return f"Repro, verified in a fresh process: {paths[0]}"
    return f"Repros, each verified in a fresh process: {', '.join(paths)}"


class _Making:
    """The scripts of one graph under way."""

    def __init__(
        self, judged: CheckedModule, graph: WrittenGraph, setting: Setting, all_facts: set[Fact]
    ) -> None:
        self._judged = judged
        self._graph = graph
        self._setting = setting
        self._all = all_facts
        self._timeout_s = judged.configuration.repro_timeout_s
        self._folder = _folder(judged.configuration.repro)

    def make(self, wanted: Sequence[_Wanted]) -> dict[_Key, ReproPart]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            # Of its own: other ranks and processes may write the same scripts now.
            with tempfile.TemporaryDirectory(prefix=".", dir=self._folder) as place:
                return self._make(wanted, Path(place).absolute())
        except OSError as error:
            reason = f"{self._folder} cannot be written ({error.strerror})"
            return {each.key: ReproPart(each.violations, reason=reason) for each in wanted}

    def _make(self, wanted: Sequence[_Wanted], place: Path) -> dict[_Key, ReproPart]:
        homes = [place / f"{number:03}" for number in range(len(wanted))]
        for home, each in zip(homes, wanted, strict=True):
            write_record(home, self._record(each), {})
        status, said = make_scripts(place, _REDUCE_S, self._timeout_s)
        replayed = read_replayed(place / REPLAYED)
        made = {}
        for home, each in zip(homes, wanted, strict=True):
            draft = place / f"{home.name}-{DRAFT}"
            result = replayed.get(draft.name)
            reason = _why_not(each.fact, result) if result else self._why_none(status, said)
            path = "" if reason else self._handed_out(draft, each)
            graph = read_reduced(home) or self._graph
            ops = (op_count(graph), op_count(self._graph)) if path else (None, None)
            made[each.key] = ReproPart(each.violations, path or None, reason, *ops)
        return made

    def _record(self, wanted: _Wanted) -> FailingGraph:
        one = msgspec.structs.replace(self._judged.checked[0], found=wanted.violations[:1])
        judged = CheckedModule(
            self._judged.module,
            (one,),
            self._judged.configuration,
            self._judged.backend,
            self._judged.contexts,
        )
        return FailingGraph(
            self._graph,
            self._setting,
            shown(judged, {wanted.fact}, self._all),
            str(torch.__version__),
            suspects=suspects_of(self._graph, wanted.violations),
        )

    def _why_none(self, status: int | None, said: Sequence[str]) -> str:
        if status is None:
            return f"it could not be verified within {self._timeout_s:g} s"
        if status:
            return f"the fresh process failed ({said[-1] if said else 'no message'})"
        return "the fresh process gave no result"

    def _handed_out(self, draft: Path, wanted: _Wanted) -> str:
        text = draft.read_bytes()
        parts = (self._setting.model, wanted.violations[0].rule)
        name = "-".join(_WORD.sub("-", part.lower()).strip("-")[:40] or "graph" for part in parts)
        path = self._folder / f"{name}-{hashlib.sha256(text).hexdigest()[:8]}.py"
        draft.replace(path)
        return str(path)


def suspects_of(
    graph: WrittenGraph, violations: Sequence[ConstraintViolation]
) -> tuple[tuple[str, ...], ...]:
    """The call that was refused, then its whole line: often enough they show it by themselves."""
    first = violations[0]
    given = {each.name for each in graph.inputs}
    node = first.node
    if node in given or first.op.startswith(("input ", "parameter ")):
        alone = [op.name for op in graph.ops if node in names_used(op)][:1]
    else:
        alone = [op.name for op in graph.ops if op.name == node]
    start = f"{os.path.basename(first.file)}:{first.line}:"
    line = [op.name for op in graph.ops if first.line and op.note.startswith(start)]
    return tuple(dict.fromkeys(tuple(names) for names in (alone, line) if names))


def _why_not(fact: Fact, result: Replayed) -> str:
    """Why its script is no repro; empty if it is one."""
    if result.error:
        return f"the script failed in a fresh process ({result.error})"
    if not result.facts:
        return "in a fresh process the script led to no violation"
    if not loosened([fact]) <= loosened(result.facts):
        return "in a fresh process the script led to other violations"
    return ""


def _folder(given: bool | Path) -> Path:
    run = read_settings().run_dir
    if isinstance(given, Path):
        return given
    return run / "repros" if run else Path(FOLDER)
