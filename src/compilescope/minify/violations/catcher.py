"""Inside the user's program: graphs that a device would refuse go to disk as records.

One record for each kind of violation and line, in the order in which they are met. What a graph is
checked against is the device that was named; without one, what its mock backend was made with.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.fx import GraphModule

from compilescope.backends.checks import CheckedGraph, ConstraintViolation, check_module
from compilescope.backends.mock.aot import AotMockBackend
from compilescope.backends.mock.backend import CheckedModule, MockBackend
from compilescope.backends.mock.configuration import Configuration, configure
from compilescope.backends.mock.messages import ConstraintError
from compilescope.minify.graph.record import SKIPPED, UNCHECKED, FailingGraph, write_record
from compilescope.minify.violations.kinds import facts, loosely, setting_of, shown
from compilescope.minify.violations.repros import suspects_of
from compilescope.settings import read_mock_settings
from compilescope.torchapi.compilation.current import current_contexts
from compilescope.torchapi.repros.backends import used_backend
from compilescope.torchapi.repros.constants import Unwritable
from compilescope.torchapi.repros.graph_writer import write_graph
from compilescope.torchapi.repros.handover import BackendCall, watched_backends


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
