"""The programs, and what is true of each: written by reading them and PyTorch's own messages.

A place is given by the text of its line, so that no comment in a program can tell a tool the
answer. Words that name a cause are PyTorch's own for it or plain ones for the same; none of them
stands in a program, because a tool that only echoes a line has not named a cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Loss:
    """A place where compilation ends, and words of which one names why."""

    line: str
    words: tuple[str, ...]
    file: str = ""
    """Where it is not in the program itself: a path beside it, or one in an installed package."""


@dataclass(frozen=True)
class Guard:
    """A guard that fails: what it looks like, and the line that reads the value."""

    pattern: str
    line: str


@dataclass(frozen=True)
class Program:
    name: str
    losses: tuple[Loss, ...] = ()
    guards: tuple[Guard, ...] = ()
    eager: tuple[str, ...] = ()
    """Words of which one says that a function runs uncompiled."""
    error: str = ""
    """What the backend raises."""
    smallest: int = 0
    """Operations without which the backend does not fail."""
    wrong: str = ""
    """The line whose numbers are wrong."""
    part: str = ""
    """The part of PyTorch's compiler that is wrong; empty where it is a backend of the program."""
    folder: Path = PROGRAMS

    @property
    def file(self) -> Path:
        return self.folder / f"{self.name}.py"

    @property
    def clean(self) -> bool:
        return not (self.losses or self.guards or self.eager or self.error or self.wrong)

    @property
    def watched(self) -> bool:
        """Whether the question is what it loses, not why a backend is wrong."""
        return not (self.error or self.wrong)


def place(program: Program, line: str, file: str = "") -> tuple[str, int]:
    """The file's name and the number of the one line with this text."""
    path = source_file(program, file)
    numbers = [n for n, text in enumerate(path.read_text().splitlines(), 1) if line in text]
    if len(numbers) != 1:
        raise ValueError(f"{path}: `{line}` stands in {len(numbers)} lines, not in one")
    return path.name, numbers[0]


def source_file(program: Program, file: str) -> Path:
    if not file:
        return program.file
    if (beside := program.folder / file).is_file():
        return beside
    package = find_spec(file.split("/")[0])
    if package is None or package.origin is None:
        raise ModuleNotFoundError(file)
    return Path(package.origin).parent.parent / file


def spoilt_words(program: Program) -> list[str]:
    """Words of a truth that stand in a program: they would be found in any echo of it."""
    texts = [source_file(program, loss.file).read_text() for loss in program.losses]
    texts.append(program.file.read_text())
    words = [word for loss in program.losses for word in loss.words] + list(program.eager)
    found = [word for word in words if any(word.lower() in text.lower() for text in texts)]
    guards = [guard.pattern for guard in program.guards]
    return found + [each for each in guards if any(re.search(each, text) for text in texts)]


_BRANCH = ("data-dependent branching", "data-dependent control flow", "generic_jump")
_ITEM = ("Tensor.item()", "capture_scalar_outputs")
_LIBRARY = "transformers/models/biogpt/modeling_biogpt.py"

TRUTHS = (
    Program("clean"),
    Program(
        "four_breaks",
        losses=(
            Loss('print("hidden"', ("builtin operator",)),
            Loss("if hidden.mean() > 0.5:", _BRANCH),
            Loss(".item()", _ITEM),
            Loss("time.sleep(0)", ("function marked as", "does not know how to trace")),
        ),
    ),
    Program(
        "helper_file",
        losses=(
            Loss("].item()", ("Tensor.item() call", "capture_scalar"), "helper_parts/clipping.py"),
        ),
    ),
    Program(
        "nested_callers",
        losses=(Loss("torch._dynamo.graph_break()", ("call to `torch._dynamo", "user-inserted")),),
    ),
    Program(
        "skipped_function",
        losses=(Loss("if x.abs().max() < 0.1:", _BRANCH),),
        eager=("skipping the function", "fell back to eager", "frame skipped", "will not compile"),
    ),
    Program(
        "library_model",
        losses=(
            Loss("if dropout_probability < self.layerdrop:", _BRANCH, _LIBRARY),
            Loss("recordable_keys = {", ("tp_iternext",), "transformers/utils/output_capturing.py"),
        ),
    ),
    Program(
        "step_counter",
        guards=(Guard(r"self('\])?\.step`? (==|was) \d", "0.01 * self.step)"),),
        eager=("recompile_limit", "recompile limit"),
    ),
    Program(
        "two_guards",
        guards=(
            Guard(r"G\['MODE'\]\['scale'\]", 'MODE["scale"]'),
            Guard(r"G\['MODE'\]\['shift'\]", 'MODE["shift"]'),
        ),
    ),
    Program("swallowed_failure", eager=("BackendCompilerFailed", "fell back to eager")),
    Program("backend_crash", error="no kernel for erf", smallest=1),
    Program("graph_limit", error="more operations than the device", smallest=13),
    Program("inductor_crash", error="CppCompileError", smallest=1),
    Program("wrong_backend", wrong="hidden = F.gelu(hidden)"),
    Program("wrong_inductor", wrong="gate = torch.relu(inner - 0.5)", part="lowerings"),
)
