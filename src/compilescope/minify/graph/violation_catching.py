"""Inside the user's program: graphs that a device would refuse go to disk as records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch

from compilescope.backends.checking import CheckedGraph, check_module
from compilescope.backends.mock.backend import Judged
from compilescope.backends.mock.configuration import configure
from compilescope.minify.graph.catching import SKIPPED
from compilescope.minify.graph.record import Record, write_record
from compilescope.minify.script.setting import Setting
from compilescope.minify.violations import Fact, facts, mock_source, shown
from compilescope.torchapi.compiling.modes import changed_settings, current_contexts
from compilescope.torchapi.reproducing.constants import Unwritable
from compilescope.torchapi.reproducing.watching import HandedOver, watched_backends
from compilescope.torchapi.reproducing.writing import write_graph


class ViolationCatcher:
    """The program runs eagerly; its graphs are checked."""

    def __init__(
        self,
        folder: Path,
        *,
        device: str | None = None,
        place: tuple[str, int | None] | None = None,
    ) -> None:
        self.folder = folder
        self._configuration = configure(device=device, strict=True)
        self._place = place
        self._count = 0
        self.skipped: list[str] = []

    @contextmanager
    def catching(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with watched_backends(self._watch):
            yield

    def _watch(self, handed: HandedOver) -> Callable[..., Any]:
        configuration = self._configuration
        checked = check_module(
            handed.module,
            configuration.constraints,
            inputs=handed.inputs,
            device=configuration.name,
        )
        wanted = [each for each in checked.errors if self._is_wanted(each.file, each.line)]
        if wanted:
            one = msgspec.structs.replace(checked, found=(wanted[0],))
            try:
                self._write(handed, one, facts(checked.errors))
            except Unwritable as reason:
                self.skipped.append(str(reason))
                (self.folder / SKIPPED).write_bytes(msgspec.json.encode(self.skipped))
        return handed.module.forward  # type: ignore[no-any-return]

    def _is_wanted(self, file: str, line: int | None) -> bool:
        if self._place is None:
            return True
        wanted, at = self._place
        return line == at and os.path.basename(file) == os.path.basename(wanted)

    def _write(self, handed: HandedOver, checked: CheckedGraph, also: set[Fact]) -> None:
        written = write_graph(handed.module)
        judged = Judged(handed.module, (checked,), self._configuration, "mock_backend")
        setting = Setting(
            backend=mock_source("mock_backend", self._configuration),
            options=("dynamic=True",) if written.loose else (),
            contexts=current_contexts(),
            settings=tuple(changed_settings()),
            model=checked.model,
        )
        (each,) = checked.errors
        record = Record(
            written.graph,
            setting,
            shown(judged, facts([each]), also),
            str(torch.__version__),
            each.file,
            each.line,
        )
        write_record(self.folder / f"{self._count:04}", record, {})
        self._count += 1
