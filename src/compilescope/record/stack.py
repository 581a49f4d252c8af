"""Where in the user's program something happened: frames, code objects and whose code they are.

Lines count from 1, columns from 0, as in Python's own `ast`. `None` means "not known".
"""

import functools
from collections.abc import Iterable
from typing import Literal

import msgspec

from compilescope.base.patterns import late

Origin = Literal["user", "library", "torch", "stdlib", "generated"]
"""Whose code a file is."""

_RESUME = late(r"^torch_dynamo_resume_in_(.+)_at_\d+$")
_PACKAGE = late(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_CELL = late(r"^<ipython-input-([1-9]\d{0,8})-\w+>$")
_STDLIB = late(r"[/\\]lib[/\\]python3\.\d+[/\\]")


class Frame(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of a stack."""

    file: str
    line: int
    function: str
    """The function's name; a resume function carries the name of the function it resumes."""
    column: int | None = None
    end_column: int | None = None
    source: str = ""
    """The text of the line when it ran, indentation kept."""
    origin: Origin = "user"


class CodeRef(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A code object: what Dynamo compiles, skips and recompiles."""

    file: str
    line: int
    """Its first line: of the decorator, where there is one."""
    function: str
    resumed_at: int | None = None
    """The line at which it goes on after a graph break, for the rest of a function."""
    is_call: bool = False
    """The place is the user's call: what was compiled is torch's wrapper of the module called."""

    @property
    def resumed(self) -> bool:
        return self.resumed_at is not None


def plain_function_name(name: str) -> str:
    """`torch_dynamo_resume_in_forward_at_8` is still `forward` to its author."""
    match = _RESUME.match(name)
    return match.group(1) if match else name


@functools.lru_cache(1 << 15)
def origin_of(file: str) -> Origin:
    """Whose code `file` is, judged by its path alone."""
    if file.startswith("<"):
        if file.startswith("<frozen "):
            return "stdlib"
        # Typed at a prompt it is the user's; `<string>`, `<eval_with_key>` and the like are made.
        return "user" if file.startswith(("<stdin", "<console", "<ipython")) else "generated"
    match = _PACKAGE.search(file)
    if match:
        return "torch" if match.group(1) == "torch" else "library"
    return "stdlib" if _STDLIB.search(file) else "user"


def cell_of(file: str) -> int | None:
    """The number of the notebook cell that a name stands for, as IPython names them."""
    match = _CELL.match(file)
    return int(match[1]) if match is not None else None


def place_of(file: str, line: int) -> str:
    """`model.py:3`, or `cell 2, line 3` in a notebook: cells go by their execution count."""
    cell = cell_of(file)
    return f"{file}:{line}" if cell is None else f"{_shown_cell(cell)}, line {line}"


def shown_file(file: str) -> str:
    """A cell by its number, all else by its name."""
    cell = cell_of(file)
    return file if cell is None else _shown_cell(cell)


def _shown_cell(number: int) -> str:
    return f"cell {number}"


def shown_code(code: CodeRef, stack: Iterable[Frame]) -> CodeRef:
    """The code object, or the user's call of it where torch itself wrote it.

    A compiled `nn.Sequential` is a wrapper inside torch: the line that calls it is the place.
    """
    if origin_of(code.file) != "torch":
        return code
    caller = innermost_user_frame(stack)
    if caller is None or caller.origin == "torch":
        return code
    return CodeRef(caller.file, caller.line, caller.function, is_call=True)


def users_call(stack: Iterable[Frame], file: str) -> Frame | None:
    """The user's innermost line of a stack that leads into a file of somebody else's; None where
    the file is the user's, or none of these lines is."""
    if origin_of(file) in ("user", "generated"):
        return None
    return innermost_own_line(stack)


def innermost_own_line(stack: Iterable[Frame]) -> Frame | None:
    """The user's own, in no installed package."""
    return next((frame for frame in reversed([*stack]) if frame.origin == "user"), None)


def innermost_user_frame(stack: Iterable[Frame]) -> Frame | None:
    """The frame to show for a stack (outermost first): the innermost that torch did not write.

    Dynamo often blames its own polyfills or the standard library; the line that called into
    them is the one the reader can change.
    """
    frames = list(stack)
    if frames and frames[-1].origin == "user":
        return frames[-1]  # Nearly all are so, and this is asked of every event.
    for wanted in (("user", "library"), ("stdlib", "generated"), ("torch",)):
        for frame in reversed(frames):
            if frame.origin in wanted:
                return frame
    return None
