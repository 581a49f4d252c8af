"""From a program with a problem (its text, its arguments, the data files that it names) to the
smallest script with the same one, verified anew.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

import compilescope.change.minify.source_passes as source_passes
from compilescope.base.errors import ToolError
from compilescope.base.plugins import discover
from compilescope.base.processes.deadline import OutOfTime
from compilescope.change.minify.engine import (
    Pass,
    Reduction,
    ReductionLimits,
    ReductionProgress,
    reduce,
)
from compilescope.change.minify.source.candidate import SourceCandidate, parse, unbound_names
from compilescope.change.minify.source.edits import is_docstring, walk
from compilescope.change.minify.source.findings import (
    Original,
    SourceFinding,
    TrialResult,
    is_of_compiler,
)
from compilescope.change.minify.source.one_file import OneFileProgram, flatten
from compilescope.change.minify.source.program_sandbox import (
    FindingJudge,
    ProgramFiles,
    ProgramSandbox,
    find_again,
    is_eager,
    with_eager_backend,
)
from compilescope.change.minify.source.script import Story, finished_script, tidy, why_not
from compilescope.record.plain_files import read_given

LATE = "the time limit ended the check"
_ROOM = 1.25
"""A check may take longer than what it is estimated by: the machine may be busier then. Chosen: a
quarter more."""


@dataclass(frozen=True)
class MinifyOptions:
    """How it is to be done."""

    jobs: int = 1
    state: Path | None = None
    limits: ReductionLimits = field(default_factory=ReductionLimits)
    progress: Callable[[ReductionProgress], None] | None = None


@dataclass(frozen=True)
class SourceRepro:
    """What came of it."""

    script: str
    """Empty where there is none; then `reason` says why."""
    reason: str
    """With a script: why no fresh process has verified it."""
    program: str
    """The small program alone."""
    reduction: Reduction[SourceCandidate]
    start_lines: int
    needs: dict[str, str]
    """Own modules that it still imports, and why."""
    torch: str = ""
    """The version it was seen on."""

    @property
    def lines(self) -> int:
        return line_count(self.program)


def line_count(text: str) -> int:
    """Lines with something on them."""
    return sum(1 for line in text.splitlines() if line.strip())


@functools.cache
def all_passes() -> list[Pass[SourceCandidate]]:
    return discover(source_passes, "PASS", Pass, several="PASSES")


def minimise(
    program: SourceProgram, cause: SourceFinding, stage: ProgramSandbox, options: MinifyOptions
) -> SourceRepro:
    """`cause` as the whole program showed it."""
    start, seen, needs = _start(program, cause, stage)
    wanted = find_again(seen, cause)
    assert wanted is not None
    allowed = frozenset(filter(None, (seen.error, wanted.error)))
    judge = FindingJudge(stage, wanted, allowed)
    judge.unbound = unbound_names(start)
    judge.recompiles = frozenset(
        each.fingerprint for each in seen.findings if each.predicate == "recompile"
    )
    judge.compiled_only = wanted.predicate == "crash" and not is_of_compiler(wanted)
    eager = with_eager_backend(start)
    if eager == start or judge.judge(eager) == "kept":
        start, judge.eager_only = eager, is_eager(eager)
    with stage.deadline.leaving(lambda: checking_s(stage.start_s, judge.seconds)):
        done = reduce(
            parse(start),
            all_passes(),
            judge,
            jobs=options.jobs,
            state=options.state,
            purpose=json.dumps([wanted.fingerprint, *sorted(allowed), seen.torch]),
            limits=options.limits,
            progress=options.progress,
        )
    text = done.best.text()
    needs = {name: why for name, why in needs.items() if name.split(".")[0] in text}
    lines = line_count(start)
    finish = _Finish(program, cause, stage, needs, lines, seen.torch)
    script, reason = finish.run(text, wanted)
    return SourceRepro(script, reason, tidy(text), done, lines, needs, seen.torch)


def checking_s(start_s: float, run_s: float) -> float:
    """What a script's check takes: once more where it was tried, and two fresh processes."""
    return _ROOM * (2 * start_s + 3 * run_s)


def _start(
    program: SourceProgram, cause: SourceFinding, stage: ProgramSandbox
) -> tuple[str, TrialResult, dict[str, str]]:
    """The program in one file if that shows the cause too; else as it is."""
    tried: list[str] = []
    for form in (program.in_one_file(), program.as_it_is()):
        seen = stage.look(form.text)
        if isinstance(seen, TrialResult) and find_again(seen, cause) is not None:
            return form.text, seen, form.left
        tried.append(_told(seen))
    raise ToolError(
        f"{program.name} does not show the same cause when run in a scratch folder: {tried[-1]}.",
        hint="Does it depend on files, on its folder or on randomness?",
    )


def _told(seen: TrialResult | str) -> str:
    if isinstance(seen, str):
        return f"the result was {seen}"
    return f"it ended with {seen.error}: {seen.message}" if seen.error else "another run differs"


@dataclass(frozen=True)
class _Finish:
    """From the small program to the script that is handed out."""

    program: SourceProgram
    cause: SourceFinding
    stage: ProgramSandbox
    needs: dict[str, str]
    lines: int
    torch: str

    def run(self, text: str, known: SourceFinding) -> tuple[str, str]:
        """The script, or why there is none. Where time runs out, the script is what was tried
        already, and the reason says so."""
        now = known
        try:
            seen = self.stage.look(text)
            found = find_again(seen, self.cause) if isinstance(seen, TrialResult) else None
            if found is None:
                return "", "the minified program did not show it a second time"
            now = found
            return self._verified(text, now)
        except OutOfTime:
            return self._script(text, now, guarded=False), LATE

    def _verified(self, text: str, now: SourceFinding) -> tuple[str, str]:
        # Away from the user's folders, unless it needs them.
        files = self.stage.surroundings.files
        reason = ""
        for around in (ProgramFiles((), ()), ProgramFiles((self.program.original.root,), files)):
            for guarded in (False, True):
                script = self._script(text, now, guarded=guarded)
                stage = self.stage
                reason = why_not(script, text, self.cause, around, stage.limit_s, stage.deadline)
                if not reason:
                    return script, ""
            if not self.needs and not files:
                break
        return "", reason

    def _script(self, text: str, now: SourceFinding, *, guarded: bool) -> str:
        cause = self.cause
        found_in = f"{Path(cause.file).name}:{cause.line}, in {cause.function}"
        if not cause.line:
            found_in = self.program.name
        story = Story(found_in, self.torch, self.lines, tuple(self.needs))
        return finished_script(text, now, story, guarded=guarded)


_LARGEST_FILES = 64 << 20
"""Bytes of all data files that travel with a program. Chosen: each candidate may need them at hand;
weights do not belong in a repro."""


@dataclass(frozen=True)
class SourceProgram:
    """A program as its user runs it."""

    original: Original
    text: str
    name: str
    """What to call it."""
    package: str = ""
    """The package that its relative imports begin from."""

    def in_one_file(self) -> OneFileProgram:
        """Its own modules written into it, and its arguments."""
        try:
            flat = flatten(self.text, (self.original.root,), self.package)
        except RecursionError:
            flat = OneFileProgram(self.text)
        text = with_arguments(flat.text, self.original.words[1:])
        return OneFileProgram(text, flat.inlined, flat.left)

    def as_it_is(self) -> OneFileProgram:
        return OneFileProgram(with_arguments(self.text, self.original.words[1:]))

    def surroundings(self) -> ProgramFiles:
        return ProgramFiles((self.original.root,), named_files(self.text, self.original.words[1:]))


def read_program(kind: str, words: tuple[str, ...]) -> SourceProgram:
    """`kind` and `words` as the command line has them."""
    if kind == "code":
        program = SourceProgram(Original("code", words, os.getcwd()), words[0], "<string>")
    elif kind == "module":
        program = _module(words)
    elif kind == "script":
        path = Path(words[0])
        path = path / "__main__.py" if path.is_dir() else path
        text = _text_of(path)
        root = str(path.resolve().parent)
        program = SourceProgram(Original("script", words, root), text, path.name)
    else:
        raise ToolError("minify takes a script, -m MODULE or -c CODE.")
    parse(program.text, program.name)
    return program


def _module(words: tuple[str, ...]) -> SourceProgram:
    name = words[0]
    base = Path(os.getcwd(), *name.split("."))
    package = name.rpartition(".")[0]
    path = base.with_name(f"{base.name}.py")
    if base.is_dir():
        path, package = base / "__main__.py", name
    if not path.is_file():
        raise ToolError(
            f"There is no module {name} in this folder.",
            hint="minify edits source, so it takes your own modules, not installed ones.",
        )
    original = Original("module", words, os.getcwd())
    return SourceProgram(original, _text_of(path), path.name, package)


def _text_of(path: Path) -> str:
    try:
        return read_given(path).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not UTF-8 text.") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from None


def with_arguments(text: str, words: tuple[str, ...]) -> str:
    """The program with its arguments written into it."""
    if not words:
        return text
    tree = cst.parse_module(text)
    body = list(tree.body)
    place = 0
    while place < len(body) and (is_docstring(body[place]) or _is_future(body[place])):
        place += 1
    lines = cst.parse_module(f"import sys\nsys.argv[1:] = {list(words)!r}\n").body
    return tree.with_changes(body=[*body[:place], *lines, *body[place:]]).code


def _is_future(line: cst.CSTNode) -> bool:
    first = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    module = first.module if isinstance(first, cst.ImportFrom) else None
    return isinstance(module, cst.Name) and module.value == "__future__"


def named_files(text: str, words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Files of the working folder that a string of the program, or an argument, names."""
    names = set(words)
    for node in walk(cst.parse_module(text)):
        if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
            names.add(node.evaluated_value)
    found: list[tuple[str, str]] = []
    total = 0
    for name in sorted(names):
        path = Path(name)
        # What is named by its whole path is found there; "." and ".." are no names of files.
        if not name or len(name) > 255 or "\0" in name or path.is_absolute() or ".." in path.parts:
            continue
        if path.parts and path.exists():
            total += _bytes_of(path)
            if total <= _LARGEST_FILES:
                found.append((name, str(path.absolute())))
    return tuple(found)


def _bytes_of(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for folder, _, files in os.walk(path):
        total += sum(
            os.path.getsize(os.path.join(folder, f)) for f in files if _readable(folder, f)
        )
        if total > _LARGEST_FILES:
            break
    return total


def _readable(folder: str, name: str) -> bool:
    return os.path.isfile(os.path.join(folder, name))
