"""What a candidate is: one change that may make a step faster, when it can apply, and its price;
and which there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import msgspec

import compilescope.change.tune.candidates as candidates
from compilescope.base.plugins import discover
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.compilation.regions import Region, own_regions
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program
from compilescope.change.tune.step_place import StepPlace
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.record.bodies import CompileTime, GraphCaptured

_MOSTLY = 0.5
"""Of steps. Chosen."""
Helps = Literal["", "launches", "compute"]


class OptimizerFacts(msgspec.Struct, frozen=True):
    """An optimizer that the step uses."""

    kind: str = msgspec.field(name="class")
    has_fused: bool = False
    is_fused: bool = False
    has_foreach: bool = False


class BlockFacts(msgspec.Struct, frozen=True):
    """Blocks of one class in a row, within a model."""

    path: str
    kind: str = msgspec.field(name="class")
    count: int = 0


class StepFacts(msgspec.Struct, frozen=True):
    """What the objects of a step show; see `stepper`."""

    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    trains: bool = False
    grad_enabled: bool = True
    optimizers: tuple[OptimizerFacts, ...] = ()
    convolutions: int = 0
    blocks: tuple[BlockFacts, ...] = ()
    matmul_precision: str = "highest"
    autocast: bool = False
    bf16: bool = False
    ranks: int = 1
    """The processes that step together."""
    capability: tuple[int, int] | None = None
    device_name: str = ""
    cache_artifacts: bool = False
    """torch can save what it compiled as one file, and load it."""
    gpu_waited: float | None = None
    """The share of steps at whose end the GPU had nothing left to do; None where none was asked."""

    @property
    def bound_by(self) -> Helps:
        """What a step waits for; empty where that is not known."""
        if self.gpu_waited is None:
            return ""
        return "launches" if self.gpu_waited > _MOSTLY else "compute"

    @property
    def on_cuda(self) -> bool:
        return "cuda" in self.devices


@dataclass(frozen=True)
class TunedProgram:
    """The program that candidates are proposed for, in one version of it."""

    program: Program
    facts: StepFacts
    place: StepPlace
    fixed: Patch | None = None
    """What a search for fixes verified for its breaks and recompiles; None where there was none."""
    fixes_refused: str = ""
    """Why there is no such patch."""

    def modules(self, *words: str) -> list[SourceModule]:
        """The user's own files that hold one of these words."""
        return own_modules(self.program, *words)

    @property
    def step_module(self) -> SourceModule | None:
        """The file that the step is in, where it is the user's."""
        file = self.place.file
        with suppress(Refused):
            return self.program.module(file) if self.program.is_own(file) else None
        return None

    @cached_property
    def regions(self) -> list[Region]:
        """What the run compiled: a decorated function that it never entered is left out."""
        run = self.program.run
        compiled = {body.frame for _, body in run.of(CompileTime) if body.frame is not None}
        regions = own_regions(self.program)
        if not compiled:
            return regions
        return [
            region
            for region in regions
            if region.form != "decorator" or any(map(region.covers, compiled))
        ]

    def with_files(self, files: Mapping[str, str]) -> TunedProgram:
        """With these texts: for a change on top of another."""
        return replace(
            self,
            program=replace(
                self.program, files={**self.program.files, **files}, _modules={}, _own=[]
            ),
        )

    def inductor_regions(self) -> list[Region]:
        """Raises `Refused` where the user's files compile nothing with Inductor."""
        if self.is_compiled_elsewhere:
            raise Refused("a library compiles, and no call in your own files says how")
        if not self.regions:
            raise Refused("torch.compile is not applied in one of your own files")
        found = [region for region in self.regions if self._is_inductors(region)]
        if not found:
            raise Refused("the program compiles with another backend than Inductor")
        return found

    @cached_property
    def uses_inductor(self) -> bool:
        """Whoever called torch.compile: by what the run compiled."""
        run = self.program.run
        return any(body.backend == "inductor" for _, body in run.of(GraphCaptured))

    def _is_inductors(self, region: Region) -> bool:
        """A backend that a variable names is what the run compiled with."""
        backend = region.argument("backend")
        if backend is None:
            return True
        name = region.module.code(backend.value)
        return name.strip("\"'") == "inductor" if name[:1] in "\"'" else self.uses_inductor

    @property
    def is_compiled_elsewhere(self) -> bool:
        """With Inductor, and not by a torch.compile of the user's: by a framework."""
        return not self.regions and self.uses_inductor

    def needs_inductor(self) -> None:
        if not self.is_compiled_elsewhere:
            self.inductor_regions()

    def needs_cuda(self, what: str) -> None:
        if not self.facts.on_cuda:
            raise Refused(f"{what} a CUDA device, and the step runs on the CPU")

    def main_edit(self) -> Edit:
        """For a line in the script. Raises `Refused` where there is no file for it."""
        if not self.program.main or not self.program.is_own(self.program.main):
            raise Refused("the program has no file of your own to set it in")
        return Edit(self.program.module(self.program.main))


class TuneCandidate(msgspec.Struct, frozen=True):
    """One way to a faster step."""

    id: str
    """Kebab-case: `reduce-overhead`."""
    title: str
    """What it does, in a few words."""
    price: str
    """What it costs or risks, in one sentence."""
    propose: Callable[[TunedProgram], Patch]
    """Raises `Refused` with the reason where it cannot apply."""
    order: int = 100
    """Of two that cost alike the lower is tried first: what wins more often."""
    helps: Helps = ""
    """Which of two: a GPU that waits for the program's launches, or one that computes all the time;
    what helps in the case at hand is tried first."""
    autotunes: bool = False
    """Its compiler measures kernels, which takes many times as long: tried after all others."""
    group: str = ""
    """Of those in one group only one can be chosen."""
    placement: str = ""
    """What is compiled with it, in a word or two, where that is all it changes."""
    lower_precision: bool = False
    """It changes numbers on purpose: offered apart."""
    for_compile_time: bool = False
    """It is to make compiling faster, not the step: offered apart."""
    only_starts: bool = False
    """It leaves the step as it is: a run to the program's end leaves a file that later starts load,
    and starts with empty caches are all that is measured."""


# Every candidate there is, in the order in which they are tried. Adding a file adds one.


@cache
def all_candidates() -> tuple[TuneCandidate, ...]:
    found = discover(candidates, "CANDIDATE", TuneCandidate, several="CANDIDATES")
    return tuple(sorted(found, key=lambda each: (each.autotunes, each.order, each.id)))


def likelihood(
    candidate: TuneCandidate, facts: StepFacts, *, lower_precision: bool
) -> tuple[bool, bool, bool, int]:
    """By which candidates are sorted for one program: what cannot be part of the result last, what
    helps with what the step waits for first."""
    cannot = candidate.lower_precision and not lower_precision
    bound = facts.bound_by
    return (
        candidate.for_compile_time,
        cannot,
        bool(bound) and candidate.helps != bound,
        candidate.order,
    )
