"""The request to `verify`: which program, which change; and the comparison, perhaps in a copy."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.commands.fix.options import check_source, read_stdin
from compilescope.apps.cli.isolation import announce, isolated
from compilescope.apps.cli.options import home_folder
from compilescope.apps.cli.program import Words
from compilescope.apps.cli.progress import working
from compilescope.apps.cli.report_formats import format_of
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.change.repair.search.options import ProgramOptions
    from compilescope.change.repair.verification.run import VerifiedChange
    from compilescope.change.repair.verification.version_pairs import VersionPair
    from compilescope.instrument.recorder.target import Target

_KINDS = ("script", "module", "code", "torchrun")
_MOST_DIFF = 64 << 20
"""Bytes of a patch. Chosen: far above what anybody reviews."""


@dataclass(frozen=True)
class VerifyRequest:
    """A request that makes sense."""

    target: Target
    pair: VersionPair
    options: ProgramOptions
    timed: bool = True
    isolated: bool = False
    form: str = "terminal"
    output: Path | None = None
    everything: bool = False
    behavior: bool = True
    """Compare what the program does, not only what it loses."""


def read_request(words: Words, given: dict[str, Any]) -> VerifyRequest:
    """Raises `ToolError` for all that can be known to fail before anything runs."""
    from compilescope.base.outputs import check_output, is_report
    from compilescope.base.processes.deadline import Deadline, command_begun
    from compilescope.change.repair.search.options import ProgramOptions, main_file
    from compilescope.instrument.recorder.names import resolve_names
    from compilescope.instrument.recorder.target import Target

    deadline = Deadline(given["budget"], begun=command_begun())
    form, output = _form(given), given["output"]
    if output is not None:
        check_output(output, force=given["force"], ours=is_report)
    kind, rest = words
    if kind not in _KINDS:
        raise ToolError("verify takes a script, -m MODULE, -c CODE or --torchrun.")
    if not rest:
        raise ToolError(
            "No program given.",
            hint="Try `compilescope verify train.py --against train_fixed.py`.",
        )
    if given["backend"] and not (given["compile_all"] or given["compile_names"]):
        raise ToolError("--backend needs --compile-all or --compile NAME.")
    target = Target(kind, rest)  # type: ignore[arg-type]
    target.check()
    main = main_file(target)
    check_source(target, main)
    pair, stdin = _pair(main, given)
    names = resolve_names(given["compile_names"], target)
    options = ProgramOptions(
        limit_s=given["limit"],
        budget_s=given["budget"],
        deadline=deadline,
        compile_names=("*", *names) if given["compile_all"] else names,
        backend=given["backend"],
        home=home_folder(given["home"]).absolute(),
        stdin=stdin,
    )
    return VerifyRequest(
        target,
        pair,
        options,
        given["timed"],
        given["isolated"],
        form,
        output,
        given["everything"],
    )


def _form(given: dict[str, Any]) -> str:
    form, output = given["form"], given["output"]
    if given["as_json"]:
        if form not in (None, "json"):
            raise ToolError("Use --json or --format, not both.")
        return "json"
    found: str = form or (format_of(output) if output is not None else None) or "terminal"
    if found == "html":
        raise ToolError("verify writes no HTML.", hint="`compilescope report` draws its run.")
    return found


def _pair(main: str, given: dict[str, Any]) -> tuple[VersionPair, bytes]:
    """Both versions, and the program's standard input."""
    from compilescope.change.repair.verification.version_pairs import (
        against_file,
        between_commits,
        patched,
    )

    named = [name for name in ("against", "patch", "git") if given[name] is not None]
    if len(named) != 1:
        wrong = "Give one of --against FILE, --patch DIFF and --git REV"
        raise ToolError(f"{wrong}{', not several' if named else ''}.")
    if named == ["git"]:
        return between_commits(given["git"], os.getcwd()), read_stdin()
    if named == ["against"]:
        if not main:
            raise ToolError("--against needs a program in a file: a script, or -m MODULE.")
        return against_file(os.path.abspath(main), given["against"]), read_stdin()
    shown, data, stdin = _diff(given["patch"])
    folders = [os.getcwd(), *([os.path.dirname(os.path.abspath(main))] if main else [])]
    folders += _tops(folders[0])
    return patched(data, shown, [os.path.realpath(folder) for folder in folders]), stdin


def _diff(path: Path) -> tuple[str, bytes, bytes]:
    """How it is called, its bytes, and what is left of standard input."""
    from compilescope.record.plain_files import read_given

    if str(path) == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ToolError("--patch - reads a diff from a pipe: `git diff | compilescope ...`.")
        return "The patch", read_stdin(), b""
    try:
        return str(path), read_given(path, most=_MOST_DIFF), read_stdin()
    except OSError as error:
        raise ToolError(f"Cannot read {path}: {error.strerror}.") from None


def _tops(folder: str) -> list[str]:
    """A diff of git's names files from the top of its tree."""
    for parent in (folder, *map(str, Path(folder).parents)):
        if os.path.exists(os.path.join(parent, ".git")):
            return [parent]
    return []


def verified(request: VerifyRequest) -> VerifiedChange:
    """Compare, with a bar at a terminal."""
    from compilescope.change.repair.verification.run import verify_change

    with working("verify" if request.behavior else "check") as work:
        options = replace(request.options, progress=work.show, tell=work.tell)
        if not request.isolated:
            announce("verify")
            return verify_change(
                request.target,
                request.pair,
                options,
                timed=request.timed,
                behavior=request.behavior,
            )
        target = request.target
        script = target.words[0] if target.kind == "script" else ""
        assert options.home is not None
        with isolated(options.home, script) as copy:
            announce("verify", copy)
            inner = replace(target, words=tuple(map(copy.into, target.words)))
            pair = request.pair.moved(copy.into)
            found = verify_change(inner, pair, options, timed=request.timed)
            for run in (found.run, found.outcome.original):
                if run:
                    copy.rename_in(options.home / run)
            return copy.back(found)
