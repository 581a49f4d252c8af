"""One graph on its way through tt-xla's compiler: what its modules at each stage tell of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from compilescope.logs.text.console import Announced, ConsoleProcess
from compilescope.logs.text.mlir.module import ModuleBody
from compilescope.model.bodies import GraphCompiled
from compilescope.model.logged import ModuleStage, OpPlace
from compilescope.model.stack import CodeRef, Frame

FIRST = "vhlo"
"""Every era of the plugin begins a graph with it; how many stages follow has changed often."""
_FAILED_TO = re.compile(
    r"Failed to (?:convert from \w+ to|create|run|generate)\s+(?P<what>\w+)", re.I
)
_STAGES = {"stablehlo": "shlo_compiler", "flatbuffer": "flatbuffer"}
_MOST_STAGES = 400
"""Of one graph. Chosen: a bound for memory."""


@dataclass
class TtGraph:
    """What is known of one graph so far."""

    process: ConsoleProcess
    start_ns: int
    announced: Announced | None = None
    after: str | None = None
    backend: str | None = None
    stages: list[ModuleStage] = field(default_factory=list)
    name: str = ""
    places: tuple[OpPlace, ...] = ()
    resumes: tuple[CodeRef, ...] = ()
    stack: tuple[Frame, ...] = ()
    errors: list[str] = field(default_factory=list)
    failed_stage: str = ""
    cut: str = ""

    @property
    def located(self) -> bool:
        return bool(self.places)

    def ended(self, stage: str, body: ModuleBody, *, whole: bool) -> None:
        """The module of one stage has been read."""
        if len(self.stages) < _MOST_STAGES:
            self.stages.append(body.stage(stage, whole=whole))
        self.name = self.name or body.name
        places, resumes, stack = body.origins()
        if places and not self.places:
            self.places, self.stack = places, stack
        self.resumes = self.resumes or resumes

    def failed(self, text: str) -> None:
        if len(self.errors) < 5:
            self.errors.append(text[:1000])
        found = _FAILED_TO.search(text)
        if found is not None and not self.failed_stage:
            what = found["what"].lower()
            self.failed_stage = _STAGES.get(what, what)

    def body(self) -> GraphCompiled:
        told = self.announced.body if self.announced else GraphCompiled("tt-xla")
        return msgspec.structs.replace(
            told,
            system="tt-xla",
            name=self.name or told.name,
            stages=tuple(self.stages),
            places=self.places,
            resumes=self.resumes,
            after=self.after,
            backend=self.backend,
            error="\n".join(self.errors),
            failed_stage=self.failed_stage,
            cut=self.cut,
        )
