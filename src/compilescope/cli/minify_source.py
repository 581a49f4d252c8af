"""`minify` for what source shows: a crash, a break, a recompile; and which kind a program needs."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING, Any

from compilescope.cli.files import write_whole
from compilescope.cli.minify_crash import minify_crash, without_own_crash
from compilescope.cli.minify_graph import minify_graph
from compilescope.cli.minifying import (
    INTERRUPTED,
    Output,
    measured,
    memory_for_candidates,
    progress_bar,
    say_how,
)
from compilescope.cli.options import print_json
from compilescope.cli.progress import working
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.minify.source.causes import Cause
    from compilescope.minify.source.choosing import Choice
    from compilescope.minify.source.messages import Seen
    from compilescope.minify.source.minimising import SourceRepro
    from compilescope.minify.source.program import SourceProgram
    from compilescope.minify.source.stage import Stage

_LONGEST_PROGRAM_S = 3600.0
_GRAPH_KINDS = ("diff", "violation")


def minify_program(kind: str, words: tuple[str, ...], output: Output, given: dict[str, Any]) -> int:
    if given["predicate"] in _GRAPH_KINDS or given["test_backend"]:
        return minify_graph(
            kind, words, output, {**given, "predicate": given["predicate"] or "crash"}
        )
    from compilescope.minify.source.choosing import choose, read_site
    from compilescope.minify.source.program import read_program
    from compilescope.minify.source.stage import Stage

    program = read_program(kind, words)
    site = read_site(given["site"]) if given["site"] else None
    limit_s = given["candidate_time"] or 60.0
    with Stage(
        program.surroundings(), limit_s=limit_s, memory_bytes=memory_for_candidates()
    ) as stage:
        seen, seconds = _first_look(program, stage, given)
        if given["candidate_time"] is None:
            # A candidate does less than the whole; but the machine may be busier then.
            stage.limit_s = max(20.0, 4 * seconds + 10)
        seen = without_own_crash(program, seen, stage, given)
        choice = None if _is_of_graph(seen, given) else choose(seen, given["predicate"], site)
        if choice is not None and choice.cause.kind == "crash":
            return minify_crash(program, choice, stage, output, given)
        if choice is not None:
            return minify_source(program, choice, stage, output, given)
    if given["predicate"] in (None, "crash") and seen.failed:
        return minify_graph(kind, words, output, {**given, "predicate": "crash"})
    raise ToolError(_nothing(program, seen, given["predicate"]), hint=_hint(seen))


def _is_of_graph(seen: Seen, given: dict[str, Any]) -> bool:
    """A compilation failed and the program caught it: only the graph shows that."""
    crashed = any(cause.kind == "crash" for cause in seen.causes)
    return given["predicate"] == "crash" and seen.failed and not crashed


def _first_look(program: SourceProgram, stage: Stage, given: dict[str, Any]) -> tuple[Seen, float]:
    """What the whole program shows, and how long that took."""
    from compilescope.minify.source.messages import Seen
    from compilescope.minify.source.stage import seen_in

    with working("minify", f"running {program.name}"):
        answer = stage.run_original(program.original, given["limit_s"] or _LONGEST_PROGRAM_S)
    seen = seen_in(answer)
    if isinstance(seen, Seen):
        return seen, answer.seconds
    raise ToolError(f"{program.name} did not run to completion: {answer.error}.")


def _nothing(program: SourceProgram, seen: Seen, predicate: str | None) -> str:
    what = predicate or "graph break, recompile or compiler crash"
    words = f"{program.name} shows no {what}"
    if seen.error:
        words += f" before it ends with {seen.error}: {_first_line(seen.message)}"
    elif not seen.graphs and not seen.causes:
        words += ": nothing was compiled"
    return words + "."


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0].rstrip(".")


def _hint(seen: Seen) -> str:
    if seen.causes:
        kinds = " and ".join(sorted({f"{cause.kind}s" for cause in seen.causes}))
        return f"It shows {kinds}."
    return "" if seen.graphs else "Does it call torch.compile?"


def minify_source(
    program: SourceProgram, choice: Choice, stage: Stage, output: Output, given: dict[str, Any]
) -> int:
    from compilescope.minify.engine import Limits
    from compilescope.minify.source.minimising import Wishes, minimise

    begun = time.monotonic()
    with progress_bar("tokens") as bar:
        wishes = Wishes(given["jobs"], output.state, Limits(given["limit_s"]), progress=bar)
        repro = minimise(program, choice.cause, stage, wishes)
    seconds = time.monotonic() - begun
    if repro.script:
        write_whole(output.path, repro.script)
        if not repro.reduction.stopped:
            output.state.unlink(missing_ok=True)
    if given["as_json"]:
        print_json(_source_json(program, choice, repro, output, seconds))
    else:
        _say_source(program, choice, repro, output, seconds)
    if repro.reduction.interrupted:
        return INTERRUPTED
    return 0 if repro.script else 2


def _say_source(
    program: SourceProgram, choice: Choice, repro: SourceRepro, output: Output, seconds: float
) -> None:
    cause = choice.cause
    print(told_cause(cause))
    print(f"\n{repro.program.rstrip()}\n")
    if repro.script:
        print(f"Repro, verified in a fresh process: {output.path}")
    else:
        print(f"No repro: {repro.reason}.")
    for name, why in repro.needs.items():
        print(f"It still imports {name}: {why}.")
    print(f"{repro.start_lines} -> {repro.lines} lines.")
    say_how(repro.reduction, seconds, output)
    for other in choice.others:
        print(f"\n{told_cause(other)}\n  {_command(program, other)}")


def told_cause(cause: Cause) -> str:
    if not cause.line:
        return f"{cause.kind}: {cause.title}"
    file = os.path.relpath(cause.file) if os.path.isabs(cause.file) else cause.file
    return f"{file}:{cause.line}: {cause.kind}: {cause.title}"


def _command(program: SourceProgram, cause: Cause) -> str:
    flag = {"module": ["-m"], "code": ["-c"]}.get(program.original.kind, [])
    site = ["--site", f"{os.path.basename(cause.file)}:{cause.line}"] if cause.line else []
    # Our options come first: what follows the program may be its own.
    words = ["--predicate", cause.kind, *site, *flag, *program.original.words]
    return shlex.join(["compilescope", "minify", *words])


def _source_json(
    program: SourceProgram,
    choice: Choice,
    repro: SourceRepro,
    output: Output,
    seconds: float,
) -> dict[str, Any]:
    return {
        "predicate": choice.cause.kind,
        "cause": choice.cause,
        "repro": str(output.path) if repro.script else None,
        "reason": repro.reason,
        "program": repro.program,
        "lines_before": repro.start_lines,
        "lines": repro.lines,
        "needs": repro.needs,
        **measured(repro.reduction, seconds),
        "others": [
            {"cause": other, "command": _command(program, other)} for other in choice.others
        ],
    }
