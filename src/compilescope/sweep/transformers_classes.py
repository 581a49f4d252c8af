"""The model classes of `transformers`: asked of the program that builds them, in a child process.

The tool itself never imports `transformers` or torch.
"""

from __future__ import annotations

import difflib
import sys
import tempfile
from pathlib import Path

import msgspec

from compilescope.errors import ToolError
from compilescope.processes.child import run_process
from compilescope.processes.outcome import ProcessEnd, last_words
from compilescope.settings import current_environment

PROGRAM = Path(__file__).parent / "programs" / "transformers_model.py"
CLASS_VARIABLE = "COMPILESCOPE_SWEEP_CLASS"
"""Names the class to the program's `build()`, for `diff` and `bench`."""
UNBUILT_STATUS = 3
"""The program's exit status where a class can't be built or run in eager mode."""
_LIMIT_S = 300.0
"""For importing every class of transformers. Chosen: it ends what hangs."""


class ModelClass(msgspec.Struct, frozen=True):
    """A concrete model class, and the folder of `transformers` it lies in."""

    name: str
    family: str


def find_classes(pattern: str) -> list[ModelClass]:
    """Those that match: `all`, a family, or globs on class names, separated by commas."""
    found = _listed(pattern)
    if not found:
        raise ToolError(f"No model class of transformers matches {pattern!r}.", hint=_hint(pattern))
    return found


def _listed(pattern: str) -> list[ModelClass]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(PROGRAM), "--list", pattern]
        ended = run_process(command, current_environment(), Path(folder), limit_s=_LIMIT_S)
    if ended.status != 0:
        raise _failure(ended)
    # Whatever imports print stands before it.
    lines = ended.stdout.decode(errors="replace").strip().splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=list[ModelClass])
    except (IndexError, msgspec.DecodeError):
        raise ToolError("The model classes of transformers can't be listed: no output.") from None


def _failure(ended: ProcessEnd) -> ToolError:
    if ended.timed_out:
        return ToolError(f"Listing the classes of transformers took over {_LIMIT_S:.0f} s.")
    last = last_words(ended.stderr) or f"exit status {ended.status}"
    if "No module named 'transformers'" in last:
        return ToolError(
            "transformers is not installed.", hint='Run: pip install "compilescope[models]"'
        )
    return ToolError(f"The model classes of transformers can't be listed: {last}")


def _hint(pattern: str) -> str:
    known = _listed("all")
    names = {each.name for each in known} | {each.family for each in known}
    near = difflib.get_close_matches(pattern, names, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return "Give all, a family such as bert, or a glob on class names such as '*ForCausalLM'."
