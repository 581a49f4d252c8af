"""The tools: each is a command, with its options as typed arguments and a typed answer.

Those that write outside of the runs folder say so in their names. What a user's program itself
writes, it writes wherever it is run.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations
from pydantic import Field

from compilescope.apps.mcp.answers import (
    Answer,
    CompareAnswer,
    DiffAnswer,
    FixAnswer,
    MinifyAnswer,
    RunAnswer,
    TuneAnswer,
    VerifyAnswer,
    WrittenAnswer,
    compare_answer,
    diff_answer,
    fix_answer,
    minify_answer,
    readable,
    run_answer,
    tune_answer,
    verify_answer,
)
from compilescope.apps.mcp.calls import EndedCommand, ToolCalls, option, options
from compilescope.apps.mcp.places import (
    AllowedProgram,
    read_backend,
    read_function,
    read_limit,
    read_program,
    read_run_name,
)
from compilescope.base.errors import ToolError
from compilescope.change.repair.delivery.stored_fix import apply_stored, read_own_fix
from compilescope.record.home import find_run, make_home

REPROS = ".repros"
"""A folder, among the runs, for the scripts of minify."""

Script = Annotated[str, Field(description="A Python file in an allowed folder.")]
Arguments = Annotated[list[str], Field(description="For the program, one word each.")]
Folder = Annotated[
    str, Field(description="Where it runs. Default: the allowed folder that the program is in.")
]
CompileAll = Annotated[
    bool,
    Field(description="Compile the outermost modules of a program that never calls torch.compile."),
]
CompileNames = Annotated[
    list[str],
    Field(description="Compile these: Class, f, Class.method, package.module.f."),
]
Backend = Annotated[str, Field(description="The backend for compile_all and compile.")]
Budget = Annotated[
    str, Field(description="For the whole search: 90s, 10m, 1h. What is found by then is kept.")
]
Limit = Annotated[str, Field(description="Stop the program after this: 90s, 10m, 1h.")]
Isolated = Annotated[
    bool, Field(description="Run the program in a temporary copy of the folder that it runs in.")
]
Site = Annotated[str, Field(description="FILE:LINE: only this line.")]
Run = Annotated[str, Field(description="ID of a run, or the start of it. Default: the latest.")]


class FailedCall(ToolError):
    """A call that failed and has an answer all the same."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.answer = answer


@dataclass(frozen=True)
class OfferedTool:
    """A function, as the server offers it."""

    call: Callable[..., Any]
    title: str
    reads: bool = False
    """It changes nothing and runs no program."""
    writes: bool = False
    """It changes files outside of the runs folder."""

    @property
    def annotations(self) -> ToolAnnotations:
        return ToolAnnotations(
            title=self.title,
            read_only_hint=self.reads,
            destructive_hint=self.writes,
            idempotent_hint=self.reads,
            open_world_hint=not self.reads,
        )


class CommandTools:
    """All of them."""

    def __init__(self, calls: ToolCalls) -> None:
        self._calls = calls
        self._folders = calls.folders

    @property
    def all(self) -> tuple[OfferedTool, ...]:
        return (
            OfferedTool(self.run, "Record a program"),
            OfferedTool(self.show, "Show a run", reads=True),
            OfferedTool(self.explain, "Explain causes", reads=True),
            OfferedTool(self.fix, "Search for verified fixes"),
            OfferedTool(self.fix_and_write_files, "Apply a verified fix", writes=True),
            OfferedTool(self.verify, "Verify a change"),
            OfferedTool(self.tune, "Search for a faster step"),
            OfferedTool(self.minify, "Make a small repro"),
            OfferedTool(self.diff, "Compare compiled with eager"),
            OfferedTool(self.compare, "Compare two runs", reads=True),
        )

    async def run(
        self,
        context: Context,
        program: Script,
        arguments: Arguments = [],  # noqa: B006
        folder: Folder = "",
        compile_all: CompileAll = False,
        compile: CompileNames = [],  # noqa: B006
        backend: Backend = "",
        limit: Limit = "1h",
    ) -> RunAnswer:
        """Run a program unmodified and record what torch.compile does: graph breaks, recompiles,
        fallbacks to eager mode, and why. Use a short run: few steps, small data. The call fails if
        the program fails; its run is recorded all the same. Next: explain, or fix."""
        target = read_program(self._folders, program, folder)
        ended = await self._calls.run(
            [
                *("run", "--quiet"),
                *self._compiled(compile_all, compile, backend),
                *target.words(arguments, separator=""),
            ],
            context,
            cwd=target.cwd,
            limit_s=read_limit(limit),
            joined=True,
        )
        if not ended.runs:
            raise ended.error
        answer = await self._run_answer(ended.runs[0], ended)
        if ended.status != 0:
            raise FailedCall(answer)
        return answer

    async def show(
        self,
        run: Run = "",
        section: Annotated[
            str,
            Field(description="One section in detail: guards, graphs, breaks, tree, timeline, ..."),
        ] = "",
    ) -> RunAnswer:
        """Show what a recorded run lost and where to start, or one section of its report."""
        return await self._run_answer(run, section=section)

    async def explain(
        self,
        run: Run = "",
        cause: Annotated[int | None, Field(ge=1, description="Only cause N of show.")] = None,
        site: Site = "",
    ) -> RunAnswer:
        """Explain why each cause of a run happens, and what to change: those that fit the answer in
        full; ask for one of the others with `cause`."""
        words = [*option("cause", cause), *option("site", site)]
        return await self._run_answer(run, explain=words)

    async def fix(
        self,
        context: Context,
        program: Script,
        arguments: Arguments = [],  # noqa: B006
        folder: Folder = "",
        site: Site = "",
        rules: Annotated[
            list[str],
            Field(description="Only causes with these rules or graph-break IDs, or these fixes."),
        ] = [],  # noqa: B006
        safe_only: Annotated[
            bool, Field(description="Only fixes that change nothing a user can observe.")
        ] = False,
        compile_all: CompileAll = False,
        compile: CompileNames = [],  # noqa: B006
        backend: Backend = "",
        budget: Budget = "10m",
        isolated: Isolated = False,
    ) -> FixAnswer:
        """Try fixes for a program's graph breaks and recompiles in fresh processes, and propose
        those that are verified: the cause is gone, nothing else is worse, the program computes and
        prints the same. Runs the program many times. Changes no file: fix_and_write_files does."""
        target = read_program(self._folders, program, folder)
        ended = await self._calls.run(
            [
                *("fix", "--json", "--no-time"),
                *self._compiled(compile_all, compile, backend),
                *(*option("site", site), *options("rule", rules), *option("safe-only", safe_only)),
                *(*option("budget", budget), *option("isolated", isolated)),
                *target.words(arguments),
            ],
            context,
            cwd=target.cwd,
        )
        return fix_answer(ended.answer())

    async def fix_and_write_files(
        self,
        run: Annotated[str, Field(description="ID of the run that fix answered.")],
        force: Annotated[
            bool, Field(description="Write even if git has uncommitted changes in these files.")
        ] = False,
    ) -> WrittenAnswer:
        """Write the fix that an earlier call of fix verified into the program's own files: all of
        it or nothing, and only if the files have not changed since."""
        (name,) = read_run_name(run) or [""]
        return await anyio.to_thread.run_sync(partial(self._apply, name, force))

    def _apply(self, name: str, force: bool) -> WrittenAnswer:
        run, fix = read_own_fix(find_run(self._calls.home, name))
        hint = "Commit or stash first, or call it with force."
        done = apply_stored(fix, force=force, check=self._folders.check, folder=fix.root, hint=hint)
        if done.already:
            head = "The files have this fix already."
        else:
            head = f"Changed: {', '.join(done.written)}." if done.written else "No file changed."
        undo = f"To undo: {done.undo}" if done.undo else ""
        diff = readable(fix.diff) if done.written else ""
        lines = [head, *done.remarks, undo, diff]
        return WrittenAnswer(
            text="\n".join(line for line in lines if line),
            run=run,
            written=list(done.written),
            already=done.already,
            environment=dict(fix.outcome.environment),
            undo=done.undo,
            notes=list(done.remarks),
        )

    async def verify(
        self,
        context: Context,
        program: Script,
        patch: Annotated[str, Field(description="A unified diff of the change.")] = "",
        against: Annotated[
            str, Field(description="Instead of a patch: the changed program, in an allowed folder.")
        ] = "",
        arguments: Arguments = [],  # noqa: B006
        folder: Folder = "",
        compile_all: CompileAll = False,
        compile: CompileNames = [],  # noqa: B006
        backend: Backend = "",
        budget: Budget = "10m",
        isolated: Isolated = False,
    ) -> VerifyAnswer:
        """Verify a change of your own, before you write it: does the program compute and print the
        same, and does nothing get worse? Runs both versions many times. Changes no file."""
        target = read_program(self._folders, program, folder)
        if bool(patch) == bool(against):
            raise ToolError("Give either patch or against.")
        change = "--patch=-" if patch else f"--against={self._folders.check_script(against)}"
        ended = await self._calls.run(
            [
                *("verify", "--json", change),
                *self._compiled(compile_all, compile, backend),
                *(*option("budget", budget), *option("isolated", isolated)),
                *target.words(arguments),
            ],
            context,
            cwd=target.cwd,
            stdin=patch.encode("utf-8", "surrogateescape"),
        )
        return verify_answer(ended.answer())

    async def tune(
        self,
        context: Context,
        program: Script,
        arguments: Arguments = [],  # noqa: B006
        folder: Folder = "",
        step: Annotated[
            str,
            Field(description="FILE:FUNCTION, a call of which is a step. Default: it is found."),
        ] = "",
        only: Annotated[list[str], Field(description="Only these candidates.")] = [],  # noqa: B006
        lower_precision: Annotated[
            bool, Field(description="Candidates that change numbers on purpose may be used.")
        ] = False,
        compile_all: CompileAll = False,
        compile: CompileNames = [],  # noqa: B006
        backend: Backend = "",
        budget: Budget = "20m",
    ) -> TuneAnswer:
        """Try compile modes, flags, optimizers and layouts, and propose what makes a step faster in
        two independent measurements and computes the same. Runs the program many times. Changes no
        file: apply the diff yourself."""
        target = read_program(self._folders, program, folder)
        ended = await self._calls.run(
            [
                *("tune", "--json"),
                *self._compiled(compile_all, compile, backend),
                *(*option("step", step), *options("only", only)),
                *(*option("lower-precision", lower_precision), *option("budget", budget)),
                *target.words(arguments),
            ],
            context,
            cwd=target.cwd,
        )
        return tune_answer(ended.answer())

    async def minify(
        self,
        context: Context,
        program: Script,
        arguments: Arguments = [],  # noqa: B006
        folder: Folder = "",
        predicate: Annotated[
            Literal["break", "recompile", "crash", "diff"] | None,
            Field(description="What it must show. Default: the crash, else the first cause."),
        ] = None,
        site: Site = "",
        test_backend: Annotated[
            str, Field(description="For a crash or a difference: the backend, or FILE.py:backend.")
        ] = "",
        budget: Budget = "10m",
        isolated: Isolated = False,
    ) -> MinifyAnswer:
        """Shrink a program to the smallest script that shows the same graph break, recompile, crash
        or difference, for a bug report. The script is written into the runs folder."""
        target = read_program(self._folders, program, folder)
        output = self._new_repro(target)
        words = [
            *("minify", "--json", f"--output={output}"),
            *(*option("predicate", predicate), *option("site", site)),
            *option("test-backend", read_backend(self._folders, test_backend)),
            *(*option("budget", budget), *option("isolated", isolated)),
            *target.words(arguments),
        ]
        try:
            found = (await self._calls.run(words, context, cwd=target.cwd)).answer()
            if not found["repro"]:
                raise ToolError(found["reason"] or "No script reproduced it.")
            script = Path(found["repro"]).read_text("utf-8", "replace")
            return minify_answer(found, script)
        finally:
            if not output.exists():
                _remove_if_empty(output.parent)

    async def diff(
        self,
        context: Context,
        build: Annotated[
            str,
            Field(description="FILE.py:FUNCTION, which returns (model, args[, kwargs])."),
        ],
        folder: Folder = "",
        test_backend: Annotated[
            str, Field(description="Under test: its name, or FILE.py:backend. Default: inductor.")
        ] = "",
        reference: Annotated[str, Field(description="Default: eager.")] = "",
        train: Annotated[bool, Field(description="Compare gradients, too.")] = False,
        localize: Annotated[
            bool, Field(description="Find the operation where the numbers diverge.")
        ] = False,
        variants: Annotated[
            int, Field(ge=0, le=100, description="So many more sets of generated inputs.")
        ] = 0,
        limit: Limit = "1h",
    ) -> DiffAnswer:
        """Compare what a model computes when compiled with what it computes in eager mode, both
        against float64: outputs, buffers, with `train` gradients. verdict unknown is no pass."""
        file = build.rpartition(":")[0] if ".py:" in build else build
        target = read_program(self._folders, file, folder)
        name = build.rpartition(":")[2] if ".py:" in build else "build"
        words = [
            *("diff", "--json"),
            *option("test-backend", read_backend(self._folders, test_backend)),
            *option("reference", read_backend(self._folders, reference)),
            *(*option("train", train), *option("localize", localize)),
            *option("variants", variants or None),
            read_function(self._folders, f"{target.path}:{name}", "build"),
        ]
        limit_s = read_limit(limit)
        ended = await self._calls.run(words, context, cwd=target.cwd, limit_s=limit_s)
        return diff_answer(ended.answer())

    async def compare(
        self,
        before: Annotated[str, Field(description="ID of a run; RUN@1 is its rank 1.")],
        after: Annotated[str, Field(description="ID of the later run.")],
    ) -> CompareAnswer:
        """Compare two runs: causes that are new, gone, moved, and the figures of both. Record a run
        before and after a change."""
        sides = [
            *read_run_name(before, ranked=True),
            *read_run_name(after, ranked=True),
        ]
        if len(sides) != 2:
            raise ToolError("Give the IDs of two runs.")
        value, text = await self._read_both(["compare", "--json", *sides], ["compare", *sides])
        return compare_answer(value, text)

    async def _run_answer(
        self,
        run: str,
        ended: EndedCommand | None = None,
        *,
        section: str = "",
        explain: list[str] | None = None,
    ) -> RunAnswer:
        """Of a run that is there, or that has just ended."""
        name = read_run_name(run)
        shown = ["show", *option("section", section), *name]
        if explain is not None:
            shown = ["explain", *explain, *name]
        value, text = await self._read_both(["report", "--format=json", *name], shown)
        printed = b"" if ended is None else ended.stdout
        answer = run_answer(value["reports"][0], text, printed=printed)
        if ended is not None and ended.status != 0:
            answer.text = f"{ended.reason or answer.ended}\n\n{answer.text}"
        if answer.output_end:
            answer.text += f"\n\nPrinted last by the program:\n{answer.output_end}"
        return answer

    async def _read_both(self, machine: list[str], human: list[str]) -> tuple[dict[str, Any], str]:
        """The JSON of one command, and what the other prints for people."""
        value, shown = await self._calls.read_both(machine, human)
        if shown.status != 0:
            raise shown.error
        text = readable(shown.stdout.decode("utf-8", "replace"))
        return value.answer(), text

    def _compiled(self, everything: bool, names: list[str], backend: str) -> list[str]:
        return [
            *option("compile-all", everything),
            *options("compile", names),
            *option("backend", read_backend(self._folders, backend)),
        ]

    def _new_repro(self, program: AllowedProgram) -> Path:
        home = self._calls.home
        try:
            make_home(home)
            folder = home / REPROS / f"{secrets.token_hex(3)}-{program.path.stem}"
            folder.mkdir(parents=True)
        except OSError as error:
            raise ToolError(f"Cannot write under {home}: {error.strerror}.") from None
        return folder / "repro.py"


def _remove_if_empty(folder: Path) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return  # What a stopped search could go on from is still there.
