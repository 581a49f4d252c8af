"""A program that is run on drawn inputs, what a fix proposes having seen them, and both eagerly."""

from __future__ import annotations

import ast
import runpy
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import torch

from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program
from compilescope.change.fixes.values.graph_values import ValueFacts
from compilescope.change.repair.trials.child.surveyor import Surveyor
from compilescope.knowledge.source.refusals import Refused
from fixes.properties.inputs import DrawnTensor, TensorKind
from fixes.repertoire import in_order, program_of

_TAIL = """

if __name__ == "__main__":
    given = torch.load(__file__.replace("program.py", "inputs.pt"))
    {calls}
"""


@dataclass(frozen=True)
class Case:
    """A program for one fix."""

    fix: str
    program: str | int
    """Its definitions; a number: those of the fix's own example."""
    takes: tuple[str, ...] = ("any",)
    """What the function is given; see `inputs.drawn`."""
    call: str = "f"
    """An expression for the function that is asked."""
    run: str = ""
    """How the program runs it on `given`, where that is more than to compile and call it."""

    draws: int = 0
    """How many, where each of them compiles something; else as many as usual."""

    @cached_property
    def is_decorated(self) -> bool:
        """Is it compiled where it is defined?"""
        return "compile(" in self.text.partition("if __name__")[0]

    @cached_property
    def of(self) -> Fix:
        return next(fix for fix in all_fixes() if fix.id == self.fix)

    @cached_property
    def text(self) -> str:
        text = self.program
        if isinstance(text, int):
            text = _definitions(self.of.examples[text].bad)
        calls = self.run
        if not calls:
            compiled = "compile(" in text
            calls = f"{self.call}(*given)" if compiled else f"{_COMPILED.format(self.call)}(*given)"
        text = text if "import torch\n" in text else f"import torch\n{text}"
        return text.rstrip() + _TAIL.format(calls=calls)


_COMPILED = 'torch.compile({}, backend="eager")'


def _definitions(text: str) -> str:
    """Up to the last function or class."""
    ends = [
        node.end_lineno or 0
        for node in ast.parse(text).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    return "\n".join(text.splitlines()[: max(ends)])


@dataclass(frozen=True)
class Versions:
    """The function before and after."""

    before: Callable[..., Any]
    after: Callable[..., Any]
    patch: Patch
    text: str


class Proposals:
    """What the fix of a case proposes, by the kinds of inputs that it has seen."""

    def __init__(self) -> None:
        self._known: dict[tuple[Case, tuple[TensorKind, ...], bool], Versions | None] = {}

    def of(self, case: Case, given: Sequence[DrawnTensor], *, surveyed: bool) -> Versions | None:
        """None where it refuses. `surveyed`: with what a search sees of the values, and not only
        a report of the run."""
        key = case, tuple(each.kind for each in given), surveyed
        if key not in self._known:
            with tempfile.TemporaryDirectory() as folder:
                self._known[key] = _proposed(case, given, Path(folder), surveyed)
        return self._known[key]


def _proposed(
    case: Case, given: Sequence[DrawnTensor], folder: Path, surveyed: bool
) -> Versions | None:
    torch.save([each.made() for each in given], folder / "inputs.pt")
    program = program_of(folder, case.text)
    found = [each for each in in_order(program) if case.of.rules & each.keys]
    if not found:
        return None
    if surveyed:
        places = [[*place] for each in found for place in each.watched]
        program = replace(program, facts=_facts(program, places))
    for subject in found:
        try:
            patch = case.of.propose(replace(subject.meant_for(case.of.rules), program=program))
        except Refused:
            continue
        (text,) = patch.files.values()
        return Versions(_loaded(case, case.text), _loaded(case, text), patch, text)
    return None


def _facts(program: Program, places: list[list[Any]]) -> ValueFacts:
    """As the surveyor of a search would see them, in this process."""
    surveyor = Surveyor({"folder": "", "places": places})
    torch.compiler.set_stance("force_eager")
    sys.settrace(surveyor._trace)
    try:
        runpy.run_path(program.main, run_name="__main__")
    except Exception:  # What was seen up to there was seen.
        pass
    finally:
        sys.settrace(None)
        torch.compiler.set_stance("default")
    return msgspec.convert(msgspec.to_builtins(surveyor.facts()), ValueFacts, strict=False)


def _loaded(case: Case, text: str) -> Callable[..., Any]:
    module = ModuleType("drawn_program")
    sys.modules[module.__name__] = module  # Dynamo looks it up.
    exec(compile(text, "program.py", "exec"), module.__dict__)
    found: Callable[..., Any] = eval(case.call, module.__dict__)
    return found
