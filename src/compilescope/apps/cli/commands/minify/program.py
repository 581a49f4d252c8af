"""`minify` of a program: runs it once, and chooses by what it shows: a graph, or its Python source,
for a crash, a graph break, or a recompile.

With `--isolated`, all of it happens in a copy of the working folder; the repro has its real place.
For a crash: is compilation behind it, and is it the graph or the source to shrink?
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.apps.cli.commands.minify.graph import minify_graph
from compilescope.apps.cli.commands.minify.shared import (
    INTERRUPTED,
    LONGEST_PROGRAM_S,
    Output,
    issue_facts,
    keep_run,
    measured,
    memory_for_candidates,
    progress_bar,
    say_how,
    say_run,
    size_facts,
)
from compilescope.apps.cli.isolation import Copy, announce, isolated
from compilescope.apps.cli.options import in_python, print_json, write_whole
from compilescope.apps.cli.progress import working
from compilescope.base.errors import ToolError
from compilescope.base.outputs import write_output
from compilescope.base.processes.deadline import clock

if TYPE_CHECKING:
    from compilescope.change.minify.sandbox import TaskResult
    from compilescope.change.minify.script.issue import IssueResult
    from compilescope.change.minify.source.findings import ChosenFinding, SourceFinding, TrialResult
    from compilescope.change.minify.source.minifier import SourceProgram, SourceRepro
    from compilescope.change.minify.source.program_sandbox import ProgramSandbox


def without_own_crash(
    program: SourceProgram, seen: TrialResult, stage: ProgramSandbox, given: dict[str, Any]
) -> TrialResult:
    """An error that comes without compilation too is the program's own, and no cause of ours."""
    from compilescope.change.minify.source.findings import TrialResult, is_of_compiler
    from compilescope.change.minify.source.program_sandbox import seen_in

    crashes = [cause for cause in seen.findings if cause.predicate == "crash"]
    if not crashes or is_of_compiler(crashes[0]) or given["predicate"] in ("break", "recompile"):
        return seen
    plain_program = msgspec.structs.replace(program.original, compiled=False)
    with working("minify", f"running {program.name} without torch.compile"):
        answer = stage.run_original(plain_program, LONGEST_PROGRAM_S)
    plain = seen_in(answer)
    if isinstance(plain, TrialResult) and not plain.error:
        return seen
    if isinstance(plain, TrialResult) and plain.error == seen.error:
        how = "in the same way"
    else:
        how = f"with {plain.error}" if isinstance(plain, TrialResult) else "abnormally"
    tell(
        f"Skipping the crash ({crashes[0].title}): without torch.compile {program.name} ends {how}."
    )
    return msgspec.structs.replace(
        seen, findings=tuple(cause for cause in seen.findings if cause.predicate != "crash")
    )


def minify_crash(
    program: SourceProgram,
    choice: ChosenFinding,
    stage: ProgramSandbox,
    output: Output,
    given: dict[str, Any],
) -> int:
    """A graph is the smaller thing to show, where one is to blame; else the source."""
    from compilescope.change.minify.source.findings import how_known

    crash = choice.finding
    tell(f"Minifying {_told_cause(crash)}\nThe same crash is {how_known(crash)}.")
    original = program.original
    if original.kind == "script" and crash.subject != "trace":
        try:
            return minify_graph(
                original.kind,
                original.words,
                output,
                {**given, "predicate": "crash", "site": None},
                known=True,
            )
        except ToolError as error:
            tell(f"No graph shows it on its own, so the source is minified. ({error.message})")
    return _minify_source(program, choice, stage, output, given)


def tell(words: str) -> None:
    """On stderr at once: what follows may take long, and stdout is for the answer."""
    print(words, file=sys.stderr, flush=True)


_GRAPH_KINDS = ("diff", "violation")


def minify_program(kind: str, words: tuple[str, ...], output: Output, given: dict[str, Any]) -> int:
    if given["predicate"] in _GRAPH_KINDS or given["test_backend"]:
        return minify_graph(
            kind, words, output, {**given, "predicate": given["predicate"] or "crash"}
        )
    from compilescope.change.minify.source.findings import choose, read_site
    from compilescope.change.minify.source.minifier import read_program
    from compilescope.change.minify.source.program_sandbox import ProgramSandbox

    program = read_program(kind, words)
    site = read_site(given["site"]) if given["site"] else None
    limit_s = given["limit"] or 60.0
    with ProgramSandbox(
        program.surroundings(),
        limit_s=limit_s,
        memory_bytes=memory_for_candidates(),
        deadline=given["deadline"],
    ) as stage:
        seen, seconds = _first_look(program, stage, given)
        if given["limit"] is None:
            # A candidate does less than the whole; but the machine may be busier then.
            stage.limit_s = max(20.0, 4 * seconds + 10)
        seen = without_own_crash(program, seen, stage, given)
        choice = None if _is_of_graph(seen, given) else choose(seen, given["predicate"], site)
        if choice is not None and choice.finding.predicate == "crash":
            return minify_crash(program, choice, stage, output, given)
        if choice is not None:
            return _minify_source(program, choice, stage, output, given)
    if given["predicate"] in (None, "crash") and seen.failed:
        return minify_graph(kind, words, output, {**given, "predicate": "crash"})
    raise ToolError(_nothing(program, seen, given["predicate"]), hint=_hint(seen))


def _is_of_graph(seen: TrialResult, given: dict[str, Any]) -> bool:
    """A compilation failed and the program caught it: only the graph shows that."""
    crashed = any(cause.predicate == "crash" for cause in seen.findings)
    return given["predicate"] == "crash" and seen.failed and not crashed


def _first_look(
    program: SourceProgram, stage: ProgramSandbox, given: dict[str, Any]
) -> tuple[TrialResult, float]:
    """What the whole program shows, and how long that took."""
    from compilescope.change.minify.source.findings import TrialResult
    from compilescope.change.minify.source.program_sandbox import seen_in

    with working("minify", f"running {program.name}"):
        answer = _run_whole(program, stage, given)
    seen = seen_in(answer)
    if isinstance(seen, TrialResult):
        return seen, answer.seconds
    raise ToolError(f"{program.name} did not run to completion: {answer.error}.")


def _run_whole(program: SourceProgram, stage: ProgramSandbox, given: dict[str, Any]) -> TaskResult:
    from compilescope.base.processes.deadline import OutOfTime

    try:
        return stage.run_original(program.original, LONGEST_PROGRAM_S)
    except OutOfTime:
        raise ToolError(
            f"The time limit of {given['deadline'].seconds:g} s is too short: {program.name} did "
            "not finish once within it.",
            hint="Raise --budget, or use a shorter run of the program.",
        ) from None


def _nothing(program: SourceProgram, seen: TrialResult, predicate: str | None) -> str:
    what = predicate or "graph break, recompile or compiler crash"
    words = f"{program.name} shows no {what}"
    if seen.error:
        words += f" before it ends with {seen.error}: {_first_line(seen.message)}"
    elif not seen.graphs and not seen.findings:
        words += ": nothing was compiled"
    return words + "."


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0].rstrip(".")


def _hint(seen: TrialResult) -> str:
    if seen.findings:
        kinds = " and ".join(sorted({f"{cause.predicate}s" for cause in seen.findings}))
        return f"It shows {kinds}."
    return "" if seen.graphs else "Does it call torch.compile?"


def minify_in_a_copy(
    kind: str, words: tuple[str, ...], output: Output, given: dict[str, Any]
) -> int:
    home = given["home"]
    with isolated(home, words[0] if kind == "script" else "") as copy:
        announce("minify", copy)
        inside = copy.into(os.path.join(copy.real, output.path))
        output = replace(output, rename_in=copy.rename_in)
        inner = replace(output, path=Path(os.path.relpath(inside)))
        if not inside.startswith(copy.folder + os.sep):
            inner = replace(output, path=Path(inside))
        with _printed(copy), _taken_out(inner, copy):
            return minify_program(kind, tuple(map(copy.into, words)), inner, given)


@contextlib.contextmanager
def _printed(copy: Copy) -> Iterator[None]:
    """The answer names the real paths."""
    answer = io.StringIO()
    try:
        with contextlib.redirect_stdout(answer):
            yield
    finally:
        sys.stdout.write(copy.back(answer.getvalue()))
        sys.stdout.flush()


@contextlib.contextmanager
def _taken_out(output: Output, copy: Copy) -> Iterator[None]:
    """What was made, and what `--resume` needs, in the real folder."""
    before = _made(output)
    try:
        yield
    finally:
        after = _made(output)
        for path, data in after.items():
            if before.get(path) != data:
                write_output(_real(path, copy), copy.bytes_back(data))
        for path in before.keys() - after.keys():
            _real(path, copy).unlink(missing_ok=True)


def _made(output: Output) -> dict[str, bytes]:
    folder, stem = output.path.absolute().parent, output.path.stem
    paths = [output.path.absolute(), output.state.absolute(), *folder.glob(f"{stem}*.safetensors")]
    paths.append(output.path.absolute().with_name(f"{stem}_issue.py"))
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def _real(path: str, copy: Copy) -> Path:
    return Path(copy.back(path))


_KEYS = (
    *("kind", "what", "gb_id", "rule", "reason", "call", "subject", "installed"),
    *("file", "line", "function", "source", "title", "guard", "logged", "echo", "error"),
)
"""Of a finding, in JSON."""


def _minify_source(
    program: SourceProgram,
    choice: ChosenFinding,
    stage: ProgramSandbox,
    output: Output,
    given: dict[str, Any],
) -> int:
    from compilescope.change.minify.engine import ReductionLimits
    from compilescope.change.minify.source.minifier import MinifyOptions, minimise

    begun = clock()
    with progress_bar("tokens") as bar:
        limits = ReductionLimits(deadline=given["deadline"])
        options = MinifyOptions(given["jobs"], output.state, limits, progress=bar)
        repro = minimise(program, choice.finding, stage, options)
    seconds = clock() - begun
    if repro.script:
        write_whole(output.path, repro.script)
        if not repro.reduction.stopped:
            output.state.unlink(missing_ok=True)
    issue = None
    if repro.script and not repro.reason:
        issue = _issue(choice.finding, repro, output, stage)
    run = _kept(choice, repro, output, seconds, given)
    if given["as_json"]:
        told = _source_json(program, choice, repro, output, seconds)
        print_json({**told, **issue_facts(issue), "run": run})
    else:
        _say_source(program, choice, repro, output, seconds, issue)
        say_run(run)
    if repro.reduction.interrupted:
        return INTERRUPTED
    return 0 if repro.script else 2


def _issue(
    cause: SourceFinding, repro: SourceRepro, output: Output, stage: ProgramSandbox
) -> IssueResult:
    from compilescope.change.minify.script.issue import (
        IssueForm,
        NoIssueForm,
        source_issue,
        write_issue,
    )
    from compilescope.change.minify.source.script import issue_signs

    def make() -> IssueForm:
        if repro.needs:
            raise NoIssueForm(f"it still imports {next(iter(repro.needs))}")
        title = [cause.title, cause.error if cause.error not in cause.title else ""]
        signs = issue_signs(cause)
        return source_issue(repro.program, cause.predicate, title, signs, repro.torch)

    timeout_s = max(0.0, min(stage.limit_s + 120, stage.deadline.left_s))
    return write_issue(output.path, make, timeout_s)


def _kept(
    choice: ChosenFinding,
    repro: SourceRepro,
    output: Output,
    seconds: float,
    given: dict[str, Any],
) -> str | None:
    from compilescope.record.bodies import MinifyOutcome
    from compilescope.record.stack import Frame, origin_of

    cause = choice.finding
    file = os.path.abspath(cause.file) if os.path.exists(cause.file) else cause.file
    outcome = MinifyOutcome(
        cause.predicate,
        cause.title,
        path=os.path.abspath(output.path) if repro.script else "",
        reason=repro.reason,
        lines_before=repro.start_lines,
        lines=repro.lines,
        needs=repro.needs,
        **size_facts(repro.reduction, seconds),
    )
    place = Frame(file, cause.line, cause.function, source=cause.source, origin=origin_of(file))
    return keep_run(output, outcome, place if cause.line else None, given, repro.torch)


def _say_source(
    program: SourceProgram,
    choice: ChosenFinding,
    repro: SourceRepro,
    output: Output,
    seconds: float,
    issue: IssueResult | None,
) -> None:
    cause = choice.finding
    print(_told_cause(cause))
    print(f"\n{repro.program.rstrip()}\n")
    if repro.script and repro.reason:
        print(f"Repro, not verified in a fresh process ({repro.reason}): {output.path}")
    elif repro.script:
        print(f"Repro, verified in a fresh process: {output.path}")
        if issue is not None:
            print(issue.words)
    else:
        print(f"No repro: {repro.reason}.")
    for name, why in repro.needs.items():
        print(f"It still imports {name}: {why}.")
    print(f"{repro.start_lines} -> {repro.lines} lines.")
    say_how(repro.reduction, seconds, output)
    for other in choice.others:
        print(f"\n{_told_cause(other)}\n  {_command(program, other)}")


def _told_cause(cause: SourceFinding) -> str:
    if not cause.line:
        return f"{cause.predicate}: {cause.title}"
    file = os.path.relpath(cause.file) if os.path.isabs(cause.file) else cause.file
    return f"{file}:{cause.line}: {cause.predicate}: {cause.title}"


def _command(program: SourceProgram, cause: SourceFinding) -> str:
    flag = {"module": ["-m"], "code": ["-c"]}.get(program.original.kind, [])
    site = ["--site", f"{os.path.basename(cause.file)}:{cause.line}"] if cause.line else []
    # Our options come first: what follows the program may be its own.
    words = ["--predicate", cause.predicate, *site, *flag, *program.original.words]
    return shlex.join(["compilescope", "minify", *in_python(), *words])


def _finding_json(finding: SourceFinding) -> dict[str, Any]:
    known = {"kind": finding.predicate, "rule": finding.rule or ""}
    return {name: known.get(name, getattr(finding, name)) for name in _KEYS}


def _source_json(
    program: SourceProgram,
    choice: ChosenFinding,
    repro: SourceRepro,
    output: Output,
    seconds: float,
) -> dict[str, Any]:
    return {
        "predicate": choice.finding.predicate,
        "cause": _finding_json(choice.finding),
        "repro": str(output.path) if repro.script else None,
        "reason": repro.reason,
        "program": repro.program,
        "lines_before": repro.start_lines,
        "lines": repro.lines,
        "needs": repro.needs,
        **measured(repro.reduction, seconds),
        "others": [
            {"cause": _finding_json(other), "command": _command(program, other)}
            for other in choice.others
        ],
    }
