"""The request to `fix`: which program (from the command line or a recorded run), and how."""

from __future__ import annotations

import ast
import os
import select
import shlex
import sys
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.options import RUN_LIMIT_S, home_folder
from compilescope.apps.cli.program import Words
from compilescope.base.durations import write_duration
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.change.repair.delivery.emitter import ScriptPlan
    from compilescope.change.repair.search.options import SearchOptions
    from compilescope.instrument.recorder.target import Target

_KINDS = ("script", "module", "code", "torchrun")
_PATIENCE_S = 10.0
"""For a program's input on stdin. Chosen: what is piped comes sooner; else nobody would know why it
waits."""


@dataclass(frozen=True)
class FixRequest:
    """A request that makes sense."""

    target: Target
    options: SearchOptions
    main: str
    """The file that the program begins in; empty for `-c`."""
    write: bool
    force: bool
    plan: ScriptPlan | None
    """Of the script that is to be made."""
    again: tuple[str, ...] = ()
    """What to type for the same search, without what is to be written."""
    everything: bool = False
    """Asked to print the whole answer."""


def read_request(words: Words, given: dict[str, Any]) -> FixRequest:
    """Raises `ToolError` for all that can be known to fail before anything runs."""
    from compilescope.base.processes.deadline import Deadline, command_begun
    from compilescope.change.repair.delivery.emitter import plan_script
    from compilescope.change.repair.search.options import SearchOptions, main_file
    from compilescope.instrument.recorder.names import resolve_names

    read_writing(given)
    budget_s = given["budget"]
    deadline = Deadline(budget_s, begun=command_begun())
    output = given["output"]
    if output is not None and given["run"] is not None:
        output = output.absolute()  # The run's own folder is entered.
    home = home_folder(given["home"]).absolute()
    target = _target(words, given)
    target.check()
    made = _original(target)
    if made is not None:
        output = output or (Path(target.words[0]) if given["script"] else None)
        target = made
    main = main_file(target)
    check_source(target, main)
    names = resolve_names(given["compile_names"], target)
    options = SearchOptions(
        site=given["site"],
        rules=frozenset(given["rules"]),
        safe_only=given["safe_only"],
        own_only=given["write"],
        limit_s=given["limit"],
        budget_s=budget_s,
        deadline=deadline,
        following=2 if given["script"] else 0,
        compile_names=("*", *names) if given["compile_all"] else names,
        backend=given["backend"],
        timed=given["timed"],
        plain=made is not None,
        home=home,
    )
    options.check()
    if target.kind == "torchrun" and given["script"]:
        raise ToolError("--script cannot be used with --torchrun: use --write or --apply RUN.")
    plan = plan_script(target, output) if given["script"] else None
    if plan is not None:
        plan.check(force=given["force"])
    again = _again(target, given)
    return FixRequest(
        target, options, main, given["write"], given["force"], plan, again, given["everything"]
    )


def _again(target: Target, given: dict[str, Any]) -> tuple[str, ...]:
    words: list[str] = []
    for name, flag in (("site", "--site"), ("backend", "--backend")):
        words += [flag, given[name]] if given[name] else []
    usual = {"limit": RUN_LIMIT_S, "budget": None}
    for name, value in usual.items():
        words += [f"--{name}", write_duration(given[name])] if given[name] != value else []
    for name, flag in (("rules", "--rule"), ("compile_names", "--compile")):
        words += [word for each in given[name] for word in (flag, each)]
    flags = {"safe_only": "--safe-only", "compile_all": "--compile-all", "isolated": "--isolated"}
    words += [flag for name, flag in flags.items() if given[name]]
    words += given.get("asking", ())
    if given["run"] is not None:
        return (*words, "--run", given["run"])
    return (*words, *target.given)


def read_writing(given: dict[str, Any]) -> None:
    """Check what is to be written; `--output` alone asks for the script too."""
    if given["output"] is not None and not given["write"]:
        given["script"] = True
    if given["write"] and given["script"]:
        raise ToolError("Use --write or --script, not both.")
    if given["output"] is not None and not given["script"]:
        raise ToolError("--output is for a script: use --write or --output, not both.")
    if given["force"] and not (given["write"] or given["script"]):
        raise ToolError("--force needs --write or --script.")
    if given["backend"] and not (given["compile_all"] or given["compile_names"]):
        raise ToolError("--backend needs --compile-all or --compile NAME.")


def _target(words: Words, given: dict[str, Any]) -> Target:
    from compilescope.instrument.recorder.target import Target

    kind, rest = words
    if given["run"] is not None:
        if rest:
            raise ToolError("Give a program or --run RUN, not both.")
        kind, rest = _recorded(given)
        if rest[:1] == ("-",):
            raise ToolError(
                "fix needs a file: the program of this run came from standard input.",
                hint="Save it, and give the file: `compilescope fix program.py`.",
            )
    if kind not in _KINDS:
        raise ToolError("fix takes a script, -m MODULE, -c CODE or --torchrun.")
    if not rest:
        raise ToolError("No program given.", hint="Try `compilescope fix script.py`, or -m MODULE.")
    return Target(kind, rest)  # type: ignore[arg-type]


def _original(target: Target) -> Target | None:
    """The program that a script of ours was made from: its fixes are to be verified on that, since
    in the script most of the code to change is text. None for any other program."""
    from compilescope.change.repair.delivery.script import original_of
    from compilescope.instrument.recorder.target import Target

    script = Path(target.words[0])
    original = original_of(script) if target.kind == "script" else None
    if original is None:
        return None
    print(f"compilescope: {script} was made from {original}: verifying that", file=sys.stderr)
    return Target("script", (str(original), *target.words[1:]))


def _recorded(given: dict[str, Any]) -> Words:
    """The command of a run, in the folder that it was given in."""
    from compilescope.record.header import read_header
    from compilescope.record.home import find_run
    from compilescope.record.provenance import is_recorded_here

    folder = find_run(home_folder(given["home"]), given["run"])
    header = read_header(folder)
    if not header.command:
        raise ToolError(
            f"Run {header.run} does not say which program was run.",
            hint="Runs that were captured from Python or read from logs have no command line.",
        )
    if not is_recorded_here(folder, header):
        raise ToolError(
            f"Run {header.run} is not known to be recorded by you, so its command is not run.",
            hint=f"If you trust the program, give it yourself: `{_to_type(header.command)}`.",
        )
    if header.cwd:
        try:
            os.chdir(header.cwd)
        except (OSError, ValueError) as error:
            where = f"Run {header.run} was recorded in {header.cwd}"
            why = getattr(error, "strerror", None) or str(error)
            raise ToolError(f"{where}, which is not accessible: {why}.") from None
    first, *rest = header.command
    flags = {"-m": "module", "-c": "code", "pytest": "pytest", "torchrun": "torchrun"}
    return (flags[first], tuple(rest)) if first in flags else ("script", header.command)


def _to_type(command: tuple[str, ...]) -> str:
    """The same program, for a person who looks at it first. Only a script: code and modules of
    others are not put into anyone's hands, nor are options of ours."""
    script, *rest = command
    words = shlex.join([script, "--", *rest] if rest else [script])
    plain = words.isprintable() and "`" not in words
    if plain and script.endswith(".py") and not script.startswith("-"):
        return f"compilescope fix {words}"
    return "compilescope fix SCRIPT [ARGS]..."


def check_source(target: Target, main: str) -> None:
    """A file that Python cannot even read need not be run to say so."""
    if target.kind == "code":
        text: str | bytes = target.words[0]
        name = "The -c code"
    elif main and os.path.isfile(main) and not zipfile.is_zipfile(main):
        try:
            text, name = Path(main).read_bytes(), os.path.relpath(main)
        except OSError as error:
            raise ToolError(f"Cannot read {main}: {error.strerror}.") from None
    elif target.kind == "module" and not main:
        raise ToolError(f"There is no module named {target.words[0]}.")
    else:
        return
    if not text.strip():
        raise ToolError(f"{name} is empty: there is nothing to run.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        at = f" on line {error.lineno}" if error.lineno else ""
        raise ToolError(f"{name} is not valid Python: {error.msg}{at}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"{name} is not valid Python: {error}.") from None


def read_stdin() -> bytes:
    """What was piped to us: the program runs many times, and each time it is given the same. A
    terminal gives nothing."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return b""
        ready, _, _ = select.select([sys.stdin], [], [], _PATIENCE_S)
        if ready:
            return sys.stdin.buffer.read()
    except (OSError, ValueError, AttributeError):
        return b""  # Closed, or no real file.
    print(
        f"compilescope: no input on stdin within {_PATIENCE_S:g} s; the program runs without it",
        file=sys.stderr,
    )
    return b""
