"""`minify` for a crash: is compilation behind it, and is it the graph or the source to shrink?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.cli.commands.minify.graph import minify_graph
from compilescope.cli.commands.minify.shared import LONGEST_PROGRAM_S, Output
from compilescope.cli.commands.minify.source import minify_source, told_cause
from compilescope.cli.progress import working
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.minify.source.choice import ChosenCause
    from compilescope.minify.source.messages import TrialResult
    from compilescope.minify.source.program import SourceProgram
    from compilescope.minify.source.program_sandbox import ProgramSandbox


def without_own_crash(
    program: SourceProgram, seen: TrialResult, stage: ProgramSandbox, given: dict[str, Any]
) -> TrialResult:
    """An error that comes without compilation too is the program's own, and no cause of ours."""
    from compilescope.minify.source.crashes import is_of_compiler
    from compilescope.minify.source.messages import TrialResult
    from compilescope.minify.source.program_sandbox import seen_in

    crashes = [cause for cause in seen.causes if cause.kind == "crash"]
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
        seen, causes=tuple(cause for cause in seen.causes if cause.kind != "crash")
    )


def minify_crash(
    program: SourceProgram,
    choice: ChosenCause,
    stage: ProgramSandbox,
    output: Output,
    given: dict[str, Any],
) -> int:
    """A graph is the smaller thing to show, where one is to blame; else the source."""
    from compilescope.minify.source.crashes import how_known

    crash = choice.cause
    tell(f"Minifying {told_cause(crash)}\nThe same crash is {how_known(crash)}.")
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
    return minify_source(program, choice, stage, output, given)


def tell(words: str) -> None:
    """On stderr at once: what follows may take long, and stdout is for the answer."""
    print(words, file=sys.stderr, flush=True)
