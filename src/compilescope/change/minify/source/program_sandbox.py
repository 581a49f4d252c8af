"""Tries programs, each in a process and a scratch folder of its own, within limits; where that
suffices with Dynamo alone, `backend="eager"` at every torch.compile.

Also at every `model.compile()` that stands as a statement of its own. Breaks and recompiles are
Dynamo's, so they mostly stay, and each try takes a fraction of the time.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import libcst as cst
import libcst.helpers as h
import msgspec

from compilescope.base.processes.deadline import Deadline, clock
from compilescope.change.minify.judgements import Outcome
from compilescope.change.minify.sandbox import Sandbox, TaskResult
from compilescope.change.minify.source.candidate import SourceCandidate, is_valid, unbound_names
from compilescope.change.minify.source.findings import (
    ORIGINAL_TASK,
    TASK,
    Original,
    SourceFinding,
    TrialRequest,
    TrialResult,
    died,
)

_WARM = ("compilescope.change.minify.source.preload",)
_ENDINGS: dict[str, Outcome] = {
    "timeout": "timeout",
    "memory": "crashed",
    "crashed": "crashed",
    "failed": "crashed",
}


@dataclass(frozen=True)
class ProgramFiles:
    """What the program finds around itself."""

    paths: tuple[str, ...] = ()
    """Folders with modules of its own that could not be written into it."""
    files: tuple[tuple[str, str], ...] = ()
    """(name in its folder, where it is now) of the files that it names: copies are laid out."""


class ProgramSandbox:
    """One warm process for all candidates."""

    def __init__(
        self,
        surroundings: ProgramFiles,
        *,
        limit_s: float,
        memory_bytes: int | None,
        fork: bool | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        # Once, before the program runs: it may delete or change the files that it names.
        self._copies = tempfile.TemporaryDirectory(
            prefix="compilescope-named-", ignore_cleanup_errors=True
        )
        files = lay_out(surroundings.files, Path(self._copies.name))
        self.surroundings = replace(surroundings, files=files)
        # A graph that one candidate compiled must not spare another one its crash.
        around = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
        if fork is None:
            # One thread each: candidates are small, and several run at a time.
            around["OMP_NUM_THREADS"] = "1"
        self._sandbox = Sandbox(
            limit_s, memory_bytes, warm=_WARM, environment=around, fork=fork, deadline=deadline
        )

    def __enter__(self) -> ProgramSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.close()
        self._copies.cleanup()

    @property
    def limit_s(self) -> float:
        return self._sandbox.limit_s

    @limit_s.setter
    def limit_s(self, seconds: float) -> None:
        self._sandbox.limit_s = seconds

    @property
    def deadline(self) -> Deadline:
        return self._sandbox.deadline

    @property
    def start_s(self) -> float:
        """What a fresh process takes before it runs anything."""
        return self._sandbox.start_s

    def run_original(self, program: Original, limit_s: float) -> TaskResult:
        """The user's program, in the user's folder."""
        return self._sandbox.run(ORIGINAL_TASK, msgspec.to_builtins(program), limit_s=limit_s)

    def run(self, text: str, *, compiled: bool = True) -> TaskResult:
        with tempfile.TemporaryDirectory(
            prefix="compilescope-trial-", ignore_cleanup_errors=True
        ) as folder:
            lay_out(self.surroundings.files, Path(folder))
            trial = TrialRequest(text, folder, self.surroundings.paths, compiled)
            return self._sandbox.run(TASK, msgspec.to_builtins(trial))

    def look(self, text: str, *, compiled: bool = True) -> TrialResult | Outcome:
        """What the program shows, or how it failed to."""
        if not is_valid(text):
            return "invalid"
        return seen_in(self.run(text, compiled=compiled))


def seen_in(answer: TaskResult) -> TrialResult | Outcome:
    crash = died(answer.signal) if answer.status == "crashed" and answer.signal else None
    if crash is not None:
        return TrialResult((crash,), crash.error, crash.title)
    return as_seen(answer.value) if answer.is_done else _ENDINGS[answer.status]


def as_seen(value: Any) -> TrialResult:
    return msgspec.convert(value, TrialResult)


def lay_out(files: tuple[tuple[str, str], ...], folder: Path) -> tuple[tuple[str, str], ...]:
    """Copies of the files; gives where each is now. One that cannot be copied is left out: the
    program says what it lacks."""
    made = []
    for name, source in files:
        target = folder / name
        with suppress(OSError):  # shutil.Error is one.
            target.parent.mkdir(parents=True, exist_ok=True)
            if Path(source).is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, target)
            made.append((name, str(target)))
    return tuple(made)


class FindingJudge:
    """Keeps programs that show the same cause and end no worse than the first one did."""

    def __init__(
        self, stage: ProgramSandbox, wanted: SourceFinding, allowed_errors: frozenset[str]
    ) -> None:
        self._stage = stage
        self._wanted = wanted
        self._allowed = allowed_errors | {""}
        self.eager_only = False
        """Refuse what would call another backend than "eager": it would take far longer."""
        self.unbound: set[str] = set()
        """Names that nothing binds in the whole program; no others may come."""
        self.recompiles: frozenset[str] | None = None
        """Keys of the whole program's recompiles: for a recompile no others may come, or the guard
        that is looked for would be one of several that fail in the same call."""
        self.seconds = 0.0
        """What the last one that was kept took."""
        self.compiled_only = False
        """Refuse what ends badly without compilation too."""

    def __call__(self, candidate: SourceCandidate) -> Outcome:
        return self.judge(candidate.text())

    def judge(self, text: str) -> Outcome:
        if not is_valid(text) or unbound_names(text) - self.unbound:
            return "invalid"
        if self.eager_only and not is_eager(text):
            return "lost"
        begun = clock()
        seen = self._stage.look(text)
        if not isinstance(seen, TrialResult):
            return seen
        if not self.shows(seen):
            return "lost"
        if self.compiled_only and not self._ends_well_without(text):
            return "lost"
        self.seconds = clock() - begun
        return "kept"

    def _ends_well_without(self, text: str) -> bool:
        plain = self._stage.look(text, compiled=False)
        return isinstance(plain, TrialResult) and not plain.error

    def shows(self, seen: TrialResult) -> bool:
        if seen.error not in self._allowed or find_again(seen, self._wanted) is None:
            return False
        others = {cause.fingerprint for cause in seen.findings if cause.predicate == "recompile"}
        return (
            self._wanted.predicate != "recompile"
            or self.recompiles is None
            or (others <= self.recompiles)
        )


def find_again(seen: TrialResult, wanted: SourceFinding) -> SourceFinding | None:
    """The cause that is the same as `wanted`."""
    return next((cause for cause in seen.findings if cause.fingerprint == wanted.fingerprint), None)


_DROPPED = ("backend", "mode", "options")


def with_eager_backend(text: str) -> str:
    """The same text where nothing is to be changed."""
    return cst.parse_module(text).visit(_Eager()).code


def is_eager(text: str) -> bool:
    """Does every compilation in it, if any, say `backend="eager"`?"""
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    compiles = [node for node in calls if ast.unparse(node.func) == "torch.compile"]
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    # As often named as called, or it is a decorator without arguments.
    if len(compiles) != sum(ast.unparse(node) == "torch.compile" for node in named):
        return False
    compiles += filter(None, map(_in_place, ast.walk(tree)))
    return all(any(map(_says_eager, node.keywords)) for node in compiles)


def _in_place(node: ast.AST) -> ast.Call | None:
    """The call of `model.compile()`, where the node is one."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    called = node.value.func
    return (
        node.value
        if isinstance(called, ast.Attribute) and _is_method(ast.unparse(called))
        else None
    )


def _is_method(name: str) -> bool:
    """`model.compile`. The result of `re.compile` is what one calls that for."""
    owner, _, last = name.rpartition(".")
    return last == "compile" and owner not in ("torch", "re", "")


def _says_eager(keyword: ast.keyword) -> bool:
    value = keyword.value
    return keyword.arg == "backend" and isinstance(value, ast.Constant) and value.value == "eager"


def _is_compile(node: cst.CSTNode) -> bool:
    # Of a call it is the name of what is called: `torch.compile(f)(x)` compiles once.
    named = not isinstance(node, cst.Call)
    return named and h.get_full_name_for_node(node) == "torch.compile"


def _eager_argument() -> cst.Arg:
    return cst.Arg(
        cst.SimpleString('"eager"'),
        keyword=cst.Name("backend"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )


def _eagerly(call: cst.Call) -> cst.Call:
    kept = [a for a in call.args if not (a.keyword and a.keyword.value in _DROPPED)]
    kept = [each.with_changes(comma=cst.MaybeSentinel.DEFAULT) for each in kept]
    return call.with_changes(args=[*kept, _eager_argument()])


class _Eager(cst.CSTTransformer):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> Any:
        if not _is_compile(original_node.func):
            return updated_node
        return _eagerly(updated_node)

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> Any:
        call = updated_node.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return updated_node
        # Of `Net().eval().compile()` there is no full name.
        owner = h.get_full_name_for_node(call.func.value) or "made"
        if not _is_method(f"{owner}.{call.func.attr.value}"):
            return updated_node
        return updated_node.with_changes(value=_eagerly(call))

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> Any:
        if not _is_compile(original_node.decorator):
            return updated_node
        if isinstance(updated_node.decorator, cst.Call):
            return updated_node
        call = cst.Call(updated_node.decorator, [_eager_argument()])
        return updated_node.with_changes(decorator=call)
