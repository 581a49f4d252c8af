"""A user's program on the command line, for the commands that run one under capture.

Here are the options that those commands share, and how they start the program.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from compilescope.apps.cli.options import home_folder, python_option
from compilescope.base.errors import ToolError, as_limit

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from compilescope.instrument.recorder.launcher import ProgramOutcome

F = TypeVar("F", bound=Callable[..., Any])
Words = tuple[str, tuple[str, ...]]
"""How the program is named (a script, a module, ...), and its words."""
_SHARED_HEADINGS = {
    "The program": (
        *("_m", "_c", "_pytest", "_torchrun", "compile_all", "compile_names", "backend"),
        *("python", "isolated", "run"),
    ),
    "Output": ("quiet", "everything", "as_json", "home"),
}
"""The headings of options that several commands have."""
_MOST_OF_SCRIPT = 1_000_000
"""Letters that are looked through for a name. Chosen: no script that people wrote is longer."""
MODES = {"-m": "module", "-c": "code", "--pytest": "pytest", "--torchrun": "torchrun"}


class ProgramCommand(click.Command):
    """Our options end where the program begins; whatever follows is the program's own.

    But for those that `may_follow`, by their parameters' names: `check train.py --max-breaks 0`.
    """

    may_follow: ClassVar[frozenset[str]] = frozenset()
    takes_stdin: ClassVar[bool] = True
    """Can the program be `-`?"""
    headings: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Of the command's own options in `--help`, each with the names of parameters."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        index = 0
        while index < len(args):
            word = args[index]
            if word in MODES:
                ctx.obj = (MODES[word], tuple(args[index + 1 :]))
                break
            if word == "--" or not word.startswith("-") or word == "-":
                rest = args[index + 1 :] if word == "--" else args[index:]
                ctx.obj = ("script", tuple(rest))
                break
            index += 2 if word in takes_value else 1
        else:
            ctx.obj = ("script", ())
        return super().parse_args(ctx, args[:index] + self._taken_back(ctx))

    def invoke(self, ctx: click.Context) -> Any:
        os.getcwd()  # A program needs a folder to run in: `main` says so where it was deleted.
        if not ctx.params.get("quiet"):
            for name in self._misplaced(ctx):
                click.echo(
                    f"compilescope: {name} stands after the program, so the program gets it; "
                    f"put it before {ctx.obj[1][0]} to give it to compilescope.",
                    err=True,
                )
        return super().invoke(ctx)

    def _misplaced(self, ctx: click.Context) -> list[str]:
        """Our own options among the program's words, where the script says nothing of them."""
        mode, words = ctx.obj
        ours = {name for option in self.params for name in option.opts if name.startswith("--")}
        given = itertools.takewhile(lambda word: word != "--", words[1:])
        found = [name for word in given if (name := word.partition("=")[0]) in ours]
        if mode != "script" or not found:
            return []
        try:
            if not Path(words[0]).is_file():
                return []
            with open(words[0], encoding="utf-8", errors="replace") as script:
                text = script.read(_MOST_OF_SCRIPT)
        except OSError:
            return []
        plain = text.replace("_", "-")
        return [name for name in dict.fromkeys(found) if name.removeprefix("--") not in plain]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The program is a file, and so may be what follows it."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]

    def _taken_back(self, ctx: click.Context) -> list[str]:
        """Our own options that follow the program; it keeps all others, and all after `--`."""
        mode, words = ctx.obj
        ours: list[str] = []
        theirs: list[str] = []
        rest = iter(words)
        after = self.options_after()
        for word in rest:
            name, _, value = word.partition("=")
            option = after.get(name)
            if word == "--" and after:
                theirs += rest
            elif option is None:
                theirs.append(word)
            else:
                ours.append(word)
                if not option.is_flag and not value:
                    ours += [next(rest)] if len(ours) + len(theirs) < len(words) else []
        if mode == "script" and theirs[:1] == ["-"]:
            mode = self._from_stdin()
        ctx.obj = (mode, tuple(theirs))
        return ours

    def _from_stdin(self) -> str:
        from compilescope.base.errors import ToolError

        if self.takes_stdin:
            return "stdin"
        raise ToolError(
            f"{self.name} needs a file: it runs the program more than once, and standard input "
            "can be read only once.",
            hint=f"Save it first: `cat > program.py`, then `compilescope {self.name} program.py`.",
        )

    def options_after(self) -> dict[str, click.Option]:
        """The options that may follow the program, by name."""
        options = [option for option in self.params if isinstance(option, click.Option)]
        return {
            name: option
            for option in options
            if option.name in self.may_follow
            for name in (*option.opts, *option.secondary_opts)
        }

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None:
                rows[param.name] = row
        for heading, names in (*self.headings.items(), *_SHARED_HEADINGS.items()):
            found = [rows.pop(name) for name in names if name in rows]
            if found:
                with formatter.section(heading):
                    formatter.write_dl(found)
        with formatter.section("Other options"):
            formatter.write_dl(list(rows.values()))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        name = f"compilescope {self.name}"
        formatter.write_usage(name, "[OPTIONS] SCRIPT [ARGS]...")
        for rest in (
            "- [ARGS]...",
            "-m MODULE [ARGS]...",
            "--pytest [ARGS]...",
            "--torchrun [ARGS]...",
        ):
            formatter.write_usage(name, f"[OPTIONS] {rest}", prefix="       ")


def program_options(function: F) -> F:
    """How to run it, and what to compile in it."""
    return _with_options(function, (*_WAYS_TO_RUN, *_LAUNCHERS, *_WHAT_TO_COMPILE, python_option))


def script_options(function: F) -> F:
    """The same for commands that run a program again and again, which pytest does not start."""
    return _with_options(function, (*_WAYS_TO_RUN, *_WHAT_TO_COMPILE))


_Options = tuple[Callable[[Any], Any], ...]


def _with_options(function: F, options: _Options) -> F:
    for option in reversed(options):
        function = option(function)
    return function


_WAYS_TO_RUN: _Options = (
    click.option("-m", "_m", is_flag=True, help="Run a module."),
    click.option("-c", "_c", is_flag=True, help="Run a string of Python."),
)
torchrun_option = click.option(
    "--torchrun", "_torchrun", is_flag=True, help="Run torchrun; events record their rank."
)
_LAUNCHERS: _Options = (
    click.option("--pytest", "_pytest", is_flag=True, help="Run pytest; events record their test."),
    torchrun_option,
)
_WHAT_TO_COMPILE: _Options = (
    click.option(
        "--compile-all",
        is_flag=True,
        help="Compile the outermost modules of a program that never calls torch.compile.",
    ),
    click.option(
        "--compile",
        "compile_names",
        multiple=True,
        metavar="NAME",
        help=(
            "Compile a module class or a function by NAME: Class, f, Class.method, "
            "package.module.f."
        ),
    ),
    click.option("--backend", help="The backend for --compile and --compile-all."),
)


def verdict_of(work: Callable[[], int]) -> int:
    """The exit status that it returns, or 2 for a bug in it: Python would leave with 1, which says
    "exceeded", or "nothing was verified". A bug is no verdict."""
    try:
        return work()
    except (ToolError, click.ClickException, BrokenPipeError):
        raise
    except Exception as error:
        if as_limit(error) is not None:
            raise
        import traceback

        traceback.print_exc()
        return 2


def launch_program(
    words: Words,
    *,
    home: Path | None,
    compile_all: bool,
    compile_names: tuple[str, ...],
    backend: str | None,
    ir: bool = False,
    timed: bool = False,
    profile: int = 0,
    calls: bool = False,
    failure_keeper: str = "",
) -> ProgramOutcome:
    """Run it to its end."""
    from compilescope.base.errors import ToolError
    from compilescope.base.settings import Settings
    from compilescope.instrument.recorder.launcher import launch
    from compilescope.instrument.recorder.names import resolve_names
    from compilescope.instrument.recorder.target import Target

    program = Target(words[0], words[1])  # type: ignore[arg-type]
    if backend and not (compile_all or compile_names):
        raise ToolError("--backend needs --compile-all or --compile NAME.")
    program.check()
    names = resolve_names(compile_names, program)
    settings = Settings(
        home=home_folder(home),
        ir=ir,
        time=timed,
        profile=profile,
        calls=calls,
        failure_keeper=failure_keeper,
        compile_names=("*", *names) if compile_all else names,
        compile_backend=backend,
    )
    return launch(program, settings)


def warn_of_lost_end(outcome: ProgramOutcome) -> None:
    if not outcome.header_written:
        print(
            "compilescope: the end of the run could not be written. Is the disk full?",
            file=sys.stderr,
        )
