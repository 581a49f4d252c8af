"""Graphs that a device refuses, caught inside the user's program; and a repro script for each kind
of violation that a strict backend refused.

Each is reduced to the few calls that show it, and then run in a fresh process. One that does not
lead to its violation there is thrown away, and the error says so.

One record for each kind of violation and line, in the order in which they are met. What a graph is
checked against is the device that was named; without one, what its mock backend was made with.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.fx import GraphModule

from compilescope.backends.checks import CheckedGraph, ConstraintViolation, check_module
from compilescope.backends.mock.aot import AotMockBackend
from compilescope.backends.mock.backend import CheckedModule, MadeRepros, MockBackend, ReproPart
from compilescope.backends.mock.configuration import Configuration, configure
from compilescope.backends.mock.messages import ConstraintError
from compilescope.base.settings import read_mock_settings, read_settings
from compilescope.change.minify.graph.candidate import op_count
from compilescope.change.minify.graph.record import (
    SKIPPED,
    UNCHECKED,
    FailingGraph,
    Setting,
    write_record,
)
from compilescope.change.minify.violations.kinds import (
    Fact,
    facts,
    loosely,
    loosened,
    setting_of,
    shown,
)
from compilescope.change.minify.violations.worker import (
    DRAFT,
    REPLAYED,
    Replayed,
    make_scripts,
    read_reduced,
    read_replayed,
)
from compilescope.instrument.torchapi.compilation.current import current_contexts
from compilescope.instrument.torchapi.repros.definitions import Unwritable, used_backend
from compilescope.instrument.torchapi.repros.graph_writer import (
    BackendCall,
    watched_backends,
    write_graph,
)
from compilescope.record.home import hide_from_git
from compilescope.record.written_graph import WrittenGraph, names_used

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
            if self._folder == Path(FOLDER):  # Where the program runs: nobody asked for it.
                hide_from_git(self._folder)
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


class ViolationCatcher:
    """The program runs on; its graphs are checked and run eagerly where they are refused."""

    def __init__(
        self,
        folder: Path,
        *,
        device: str | None = None,
        configuration: Configuration | None = None,
        place: tuple[str, int | None] | None = None,
    ) -> None:
        """Without `device` and `configuration`, each graph's own backend says."""
        self.folder = folder
        self._given = configure(device=device, strict=True) if device else configuration
        self._elsewhere = configure(strict=True) if read_mock_settings().has_rules else None
        """What the environment asks of graphs whose backend has no rules."""
        self._place = place
        self._count = 0
        self._seen: set[tuple[object, ...]] = set()
        self._unchecked: dict[str, None] = {}
        self.skipped: list[str] = []

    @contextmanager
    def catching(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with watched_backends(self._watch):
            yield

    def _watch(self, call: BackendCall) -> Callable[..., Any]:
        backend, configuration = self._checked_by(call)
        if configuration is None:
            return call.compile()
        # Inductor changes the graph that it is given.
        module = GraphModule(call.module, copy.deepcopy(call.module.graph))
        found = self._check(backend, configuration, call)
        errors = [each for graph in found for each in graph.errors]
        if any(self._is_wanted(each) for each in errors):
            name = "aot_mock_backend" if isinstance(backend, AotMockBackend) else "mock_backend"
            judged = CheckedModule(module, tuple(found), configuration, name, current_contexts())
            try:
                self._write(judged, errors)
            except Unwritable as reason:
                self.skipped.append(str(reason))
                (self.folder / SKIPPED).write_bytes(msgspec.json.encode(self.skipped))
        return module.forward  # type: ignore[no-any-return]

    def _checked_by(self, call: BackendCall) -> tuple[MockBackend | None, Configuration | None]:
        """The mock backend that it was compiled with, if so, and what it is checked against."""
        if self._given is not None:
            return None, self._given
        used = used_backend(call.compiler, as_source=False)
        if isinstance(used.function, MockBackend):
            configuration = used.function.configuration_for(used.arguments.get("options") or {})
            return used.function, replace(configuration, strict=True, repro=False)
        if self._elsewhere is None:
            self._unchecked[used.name] = None
            (self.folder / UNCHECKED).write_bytes(msgspec.json.encode(list(self._unchecked)))
        return None, self._elsewhere

    def _check(
        self, backend: MockBackend | None, configuration: Configuration, call: BackendCall
    ) -> Sequence[CheckedGraph]:
        if not isinstance(backend, AotMockBackend):
            checked = check_module(
                call.module,
                configuration.constraints,
                inputs=call.inputs,
                device=configuration.name,
            )
            return [checked]
        try:
            AotMockBackend(configuration)(call.module, call.inputs)
        except ConstraintError as error:
            return error.checked
        return []

    def _is_wanted(self, each: ConstraintViolation) -> bool:
        if self._place is None:
            return True
        wanted, at = self._place
        return each.line == at and os.path.basename(each.file) == os.path.basename(wanted)

    def _write(self, judged: CheckedModule, errors: Sequence[ConstraintViolation]) -> None:
        written = write_graph(judged.module)
        also = facts(errors)
        for each in filter(self._is_wanted, errors):
            (fact,) = facts([each])
            kind = loosely(msgspec.structs.astuple(fact))
            key = (each.device, kind, each.file, each.line)
            if key in self._seen:
                continue
            one = msgspec.structs.replace(judged.checked[0], found=(each,))
            alone = replace(judged, checked=(one,))
            record = FailingGraph(
                written.graph,
                setting_of(judged, written),
                shown(alone, {fact}, also),
                str(torch.__version__),
                each.file,
                each.line,
                suspects=suspects_of(written.graph, [each]),
            )
            write_record(self.folder / f"{self._count:04}", record, {})
            self._count += 1
            self._seen.add(key)
