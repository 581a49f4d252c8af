"""The quick run: a small model of `transformers` through capture, a device check and KernelDiff.

On request a failure is forced, too, which the minifier makes small.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.apps.demo.steps import Command
from compilescope.apps.demo.tour import OUTPUT, PROGRAMS, CommandResult, run_command, write
from compilescope.base.errors import ToolError
from compilescope.record import bodies
from compilescope.record.graph import decode_graph
from compilescope.record.run import Run, read_run

PROGRAM = "quick.py"
REPRO = "repro.py"
_COMPILERS = ("c++", "g++", "clang++", "cl")
_HOME = ".compilescope"


@dataclass(frozen=True)
class Knobs:
    """What a user may set of the quick run."""

    model: str
    batch: int = 2
    seq: int = 16
    padded: int = 0
    """Padding tokens at the end of each sequence."""
    backend: str = "inductor"
    device: str = "npu-a"
    atol: float | None = None
    rtol: float | None = None
    fail: str = ""
    """The operation at which a backend is made to fail; empty: none."""
    home: Path | None = None
    """Where its runs go; None: into its own folder."""


@dataclass
class QuickAnswers:
    """What the commands found; None: not asked."""

    about: str = ""
    """The model and its inputs, as the program prints them."""
    capture: dict[str, Any] | None = None
    preflight: dict[str, Any] | None = None
    diff: dict[str, Any] | None = None
    minify: dict[str, Any] | None = None
    commands: tuple[CommandResult, ...] = ()

    @property
    def good(self) -> bool:
        """The model ran, the numbers agree, and a forced failure gave a repro."""
        agrees = self.diff is not None and self.diff["verdict"] == "pass"
        return agrees and (self.minify is None or self.minify["repro"] is not None)


def usual_backend() -> str:
    """Inductor, where there is a compiler for its code."""
    return "inductor" if any(map(shutil.which, _COMPILERS)) else "aot_eager"


def padded_tokens(text: str, seq: int) -> int:
    """`8` is a length, `0.25` and `25%` are shares of the sequence."""
    try:
        if text.endswith("%"):
            count = round(float(text[:-1]) / 100 * seq)
        else:
            count = round(float(text) * seq) if "." in text else int(text)
    except (ValueError, OverflowError):
        raise ToolError(
            f"--padding {text!r} is neither a length nor a share.",
            hint="Write a number of tokens (8) or a share of the sequence (0.25 or 25%).",
        ) from None
    if not 0 <= count < seq:
        raise ToolError(
            f"--padding {text} is {count} of {seq} tokens; at least one token must remain.",
            hint="Choose less padding or a longer --seq.",
        )
    return count


def program_text(knobs: Knobs) -> str:
    """The bundled program with these knobs as its constants."""
    constants = {
        "MODEL": knobs.model,
        "BATCH": knobs.batch,
        "SEQ": knobs.seq,
        "PADDED": knobs.padded,
        "BACKEND": knobs.backend,
        "FAIL_OP": knobs.fail,
    }
    text = (PROGRAMS / PROGRAM).read_text(encoding="utf-8")
    for name, value in constants.items():
        # Not a plain replacement text: a value may contain backslashes.
        line = f"{name} = {json.dumps(value)}"
        text = re.sub(rf"^{name} = [^ \n]+", lambda _, line=line: line, text, flags=re.M)  # type: ignore[misc]
    return text


def quick_run(
    knobs: Knobs,
    folder: Path,
    environment: Mapping[str, str],
    heard: Callable[[str, int, int], None],
) -> QuickAnswers:
    """Run its commands; `heard` gets what they do, how many are done, and how many there are."""
    write(folder / PROGRAM, program_text(knobs))
    answers = QuickAnswers()
    commands = _commands(knobs)

    def pass_on(words: str) -> None:
        heard(words, len(answers.commands), len(commands))

    for name, command in commands:
        pass_on(command.text)
        ran = run_command(command, folder, environment, pass_on)
        answers.commands = (*answers.commands, ran)
        number = len(answers.commands)
        write(folder / OUTPUT / f"{number:02}-{name}.txt", f"{ran.plain}\n{ran.errors}")
        document = _document(ran)
        setattr(answers, name, document)
        if name == "capture":
            _take_program(answers, ran, folder)
            _check_operation(knobs.fail, (knobs.home or folder / _HOME) / document["run"])
    return answers


def _commands(knobs: Knobs) -> list[tuple[str, Command]]:
    def command(*words: str) -> Command:
        return Command(("compilescope", *words, "--json"), document=True)

    tolerances = [("--atol", knobs.atol), ("--rtol", knobs.rtol)]
    given = [word for name, value in tolerances if value is not None for word in (name, str(value))]
    home = [] if knobs.home is None else ["--dir", str(knobs.home)]
    # `run` passes on what follows the program.
    capture = Command(("compilescope", "run", "--json", *home, PROGRAM), document=True)
    diff = ("diff", *home, f"{PROGRAM}:build", "--test-backend", knobs.backend, *given)
    commands = [
        ("capture", capture),
        ("preflight", command("preflight", *home, PROGRAM, "--device", knobs.device)),
        ("diff", command(*diff)),
    ]
    if knobs.fail:
        crash = ("--predicate", "crash", "--test-backend", f"{PROGRAM}:failing", "-o", REPRO)
        commands.append(("minify", command("minify", PROGRAM, *crash)))
    return commands


def _document(ran: CommandResult) -> dict[str, Any]:
    """The JSON at the end of its output: the program may have printed before it."""
    text = ran.plain
    starts = [match.start() for match in re.finditer(r"^\{", text, flags=re.M)]
    for start in reversed(starts):
        try:
            value = json.loads(text[start:])
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    reason = _last_words(ran.errors) or f"exit status {ran.exit_status}"
    raise ToolError(f"`{ran.command.text}` gave no result: {reason}")


def _last_words(errors: str) -> str:
    """The sentence that our commands end with, else the last line of a traceback."""
    said = re.findall(r"^compilescope: error: (.+)$", errors, flags=re.M)
    lines = [line for line in errors.splitlines() if line.strip()]
    return (said or lines or [""])[-1]


def _take_program(answers: QuickAnswers, ran: CommandResult, folder: Path) -> None:
    """What the program said of its model, or why it ended."""
    assert answers.capture is not None
    if answers.capture["exit_status"] != 0:
        reason = _last_words(ran.errors)
        raise ToolError(
            reason or "The program was stopped.", hint=f"The program: {folder / PROGRAM}"
        )
    printed = [line for line in ran.plain.splitlines() if " parameters, on " in line]
    answers.about = printed[0] if printed else ""


def _check_operation(name: str, folder: Path) -> None:
    there = _operations(read_run(folder)) if name else {name}
    if name not in there:
        raise ToolError(
            f"No graph of this model contains the operation {name!r}.",
            hint=f"--fail takes one of: {', '.join(sorted(there))}",
        )


def _operations(run: Run) -> set[str]:
    """By the names that `failing` compares."""
    texts = [
        run.artifacts.get(body.graph)
        for _, body in run.of(bodies.GraphCaptured)
        if body.stage == "dynamo" and body.graph
    ]
    return {
        node.target.rsplit(".", 1)[-1]
        for text in texts
        if text
        for node in decode_graph(text).nodes
        if node.op.startswith("call_")
    }
