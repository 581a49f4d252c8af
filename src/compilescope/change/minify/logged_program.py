"""A repro of a log's break that takes the model from the user's own script.

The script runs, eagerly, until the line that breaks is about to run; then the module that is being
called there is compiled alone. Training loops end with their first step. A repro is handed out only
after it has shown the break at that very line, here, in a fresh process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilescope.base import texts
from compilescope.base.processes.child import run_within
from compilescope.base.settings import fresh_environment
from compilescope.base.texts import in_docstring
from compilescope.change.minify.script.conclusion import ending_source, exits, shows_bug
from compilescope.change.minify.script.embedded import call_source, code_of, user_program
from compilescope.change.minify.script.verification import ReproResult, write_verified
from compilescope.instrument.torchapi import plain_torch
from compilescope.knowledge.findings.breaks import BreakFinding

_WORD = re.compile(r"[^a-z0-9]+")
_SCRIPT = '''\
"""Shows graph break {gb}: {kind}

The log has it at {place}:

    {source}

This runs your script up to that line, then compiles {what} alone
and calls it with {how}.
{verified}

    python {name}            plain torch, backend eager{others}

{exits}
"""

import sys
import traceback

import torch

SCRIPT = {script!r}
ARGUMENTS = {arguments!r}
FILE, LINE, FUNCTION = {file!r}, {line}, {function!r}
BACKEND = sys.argv[1] if len(sys.argv) > 1 else "eager"
CALL = {number}  # Of the modules that are being called at that line; 0 is the innermost.


def inputs(args, kwargs):
    {inputs}


def main():
    program = UserProgram(SCRIPT, ARGUMENTS, FILE, LINE, FUNCTION)
    calls = program.calls_at_line({change})
    if not calls:
        return None, f"{{SCRIPT}} never reaches {{FILE}}:{{LINE}}."
    called, args, kwargs = calls[CALL]{describe}
    args, kwargs = on_device(args, kwargs, inputs(args, kwargs))
    compiled = torch.compile(called, backend=BACKEND)

    def run():
        with torch.set_grad_enabled(program.grad):
            compiled(*args, **kwargs){sync}

    here = f"{{program.named}}:{{LINE}}", f'File "{{program.named}}", line {{LINE}},'
    if any(place in text for text in breaks_while(run) for place in here):
        return True, f"Dynamo breaks at {{FILE}}:{{LINE}}."
    return False, f"Dynamo does not break at {{FILE}}:{{LINE}}."


def on_device(args, kwargs, given):
    """Where the program had its own."""
    from torch.utils import _pytree as pytree

    found = [each.device for each in pytree.tree_leaves((args, kwargs)) if torch.is_tensor(each)]
    place = found[0] if found else torch.device("cpu")
    return pytree.tree_map_only(torch.Tensor, lambda each: each.to(place), given)


def arguments(*args, **kwargs):
    return args, kwargs


{copied}


{setup}conclude_from(main, thing="graph break")
'''
_DEVICES = """
    python {name} openxla    torch_xla on a CPU
    python {name} tt         a Tenstorrent device"""
_PLAIN = """\
# Stand-ins for devices that are not here let the script run on plain torch.
plain = PlainTorch()
if plain.install() and BACKEND in plain.BACKENDS:
    conclude(None, "torch_xla is not installed: use backend eager here.")


"""
_SYNC = """
        import torch_xla

        torch_xla.sync()"""
_HERE = "Verified to break here on plain torch."
_NOT_TRIED = "Verified to break here on plain torch; openxla and tt were not available."
_MADE = "random inputs of the same shapes and dtypes"
_LIVE = "the inputs of that call"


@dataclass(frozen=True)
class OwnProgram:
    """The script that wrote a log, as it is here."""

    script: str
    """Its absolute path."""
    arguments: tuple[str, ...] = ()
    for_a_device: bool = False
    """Its log is one of torch_xla or tt-xla."""
    plain: bool = False
    """It names devices that may not be here: stand-ins let it run."""
    limit_s: float = 120.0
    """For each run of it."""
    dead: list[str] = field(default_factory=list)
    """Why it cannot be run at all, once that is known."""


@dataclass(frozen=True)
class _ModuleCall:
    """Which of the calls at the line, and what is known of it."""

    number: int
    what: str = "the module called there"
    inputs: str = ""
    """The text between the brackets; empty: those of the program."""
    several: bool = False


def write_own(site: BreakFinding, program: OwnProgram, file: str, folder: Path) -> ReproResult:
    """`file` is the path here of the one that breaks."""
    path = folder / file_name(site)
    reason = ""
    for number in (0, -1):
        if program.dead:
            return ReproResult(reason=program.dead[0])
        call, failed = _described(site, program, file, number, folder)
        reason = reason or failed
        if call is None:
            break
        for each in _ways(call) if not failed else ():
            made = write_verified(
                path, _text(site, program, file, each, path.name), timeout_s=program.limit_s
            )
            if made.path is not None:
                return made
        if not call.several:
            break
    name = os.path.basename(program.script)
    return ReproResult(reason=reason or f"the break did not occur again when {name} ran here")


def _ways(call: _ModuleCall) -> Iterator[_ModuleCall]:
    if call.inputs:
        yield call
    yield _ModuleCall(call.number, call.what)


def _described(
    site: BreakFinding, program: OwnProgram, file: str, number: int, folder: Path
) -> tuple[_ModuleCall | None, str]:
    """The call, found by a draft that also says what it is called with; and why that does not
    break, or None where the line is never reached."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{file_name(site)}.draft.py"
    draft.write_text(
        _text(site, program, file, _ModuleCall(number), draft.name, draft=True), "utf-8"
    )
    try:
        done = run_within(
            [sys.executable, str(draft)],
            program.limit_s,
            env=fresh_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except subprocess.TimeoutExpired:
        program.dead.append(f"the script took more than {program.limit_s:g} s")
        return None, program.dead[0]
    finally:
        draft.unlink(missing_ok=True)
    told, stderr = (
        _last_json(done.stdout.decode(errors="replace")),
        done.stderr.decode(errors="replace"),
    )
    if told is None:
        return None, _why_not_reached(stderr, program)
    inputs = ", ".join(told["inputs"]) if isinstance(told["inputs"], list) else ""
    what = f"`{told['name']}` ({told['kind']})" if told["name"] else f"`{told['kind']}`"
    call = _ModuleCall(number, what, inputs, told["calls"] > 1)
    breaks = shows_bug(done.returncode, stderr.splitlines())
    return call, "" if breaks else "the module alone does not break there"


def _why_not_reached(stderr: str, program: OwnProgram) -> str:
    """The program's own failure is the same for every break."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    last = lines[-1].removeprefix("Inconclusive: ") if lines else ""
    if "never reaches" in last:
        # As argparse says it.
        last = next((line for line in reversed(lines) if " error: " in line), "")
        if not last:
            return "the script never reaches the line when it runs here"
    why = f"the script cannot run here ({last[:160]})" if last else "the script cannot run here"
    program.dead.append(why)
    return why


def _last_json(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and "inputs" in found:
                return found
    return None


def _text(
    site: BreakFinding,
    program: OwnProgram,
    file: str,
    call: _ModuleCall,
    name: str,
    *,
    draft: bool = False,
) -> str:
    device = program.for_a_device
    copied = [code_of(user_program), *([code_of(plain_torch)] if program.plain else [])]
    copied += [code_of(call_source)] if draft else []
    copied.append(ending_source().strip())
    return _SCRIPT.format(
        **break_words(site),
        what=one_line(call.what),
        how=_MADE if call.inputs else _LIVE,
        verified=_NOT_TRIED if device else _HERE,
        name=name,
        others=_DEVICES.format(name=name) if device else "",
        script=program.script,
        arguments=list(program.arguments),
        file=os.path.realpath(file),
        line=site.line,
        function=site.function,
        number=call.number,
        inputs=f"return arguments({call.inputs})" if call.inputs else "return args, kwargs",
        change="plain.on_cpu" if program.plain else "",
        describe="\n    describe(calls, CALL)" if draft else "",
        sync=_SYNC if device else "",
        exits=exits("graph break"),
        copied="\n\n\n".join(copied),
        setup=_PLAIN if program.plain else "",
    )


def one_line(text: str) -> str:
    """For a docstring: a log may hold anything."""
    return in_docstring(texts.one_line(text)[:200])


def break_words(site: BreakFinding) -> dict[str, str]:
    """What the head of every script says of the log's break."""
    return {
        "gb": one_line(site.gb_id or "(no ID)"),
        "kind": one_line(site.gb_type),
        "place": one_line(f"{site.file}:{site.line}"),
        "source": one_line(site.source) or "(the log does not include the line)",
    }


def file_name(site: BreakFinding) -> str:
    stem = _WORD.sub("_", Path(site.file).stem.lower()).strip("_")[:40]
    kind = _WORD.sub("_", (site.gb_id or "break").lower()).strip("_")[:20]
    return f"{kind}_{stem or 'program'}_{site.line}.py"
