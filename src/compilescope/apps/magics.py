"""`%load_ext compilescope`: the cell magic `%%compilescope` captures what its cell compiles."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, cast

from compilescope.apps.front import Capture, capture
from compilescope.apps.learn.display import show_html, write
from compilescope.base.errors import ToolError

_USUAL_NAME = "captured"


class _CellOptions(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ToolError(f"%%compilescope: {message}.", hint=" ".join(self.format_usage().split()))


def _parser() -> argparse.ArgumentParser:
    options = _CellOptions("%%compilescope", add_help=False, allow_abbrev=False)
    options.add_argument("name", nargs="?", default=_USUAL_NAME)
    for flag in ("--reset", "--explain", "--quiet", "--time", "--ir", "--profile"):
        options.add_argument(flag, action="store_true")
    options.add_argument("--dir")
    return options


def run_cell(shell: Any, line: str, cell: str) -> BaseException | None:
    """Run the cell under capture, show what was lost, and keep the capture under a name.

    `%%compilescope [NAME] [--reset] [--explain] [--quiet] [--time] [--ir] [--profile] [--dir DIR]`

    NAME is the variable for the capture (`captured`). With --reset everything compiles anew, with
    --explain each cause is shown in full, with --quiet nothing. The others are those of
    `compilescope.capture`.
    """
    given = _parser().parse_args(shlex.split(line))
    if not given.name.isidentifier():
        raise ToolError(f"%%compilescope: {given.name!r} is not a name for a variable.")
    if given.reset:
        import torch

        torch.compiler.reset()
    how = {"time": given.time, "ir": given.ir, "profile": given.profile}
    # The magic's own line counts: places must be those of the cell as it is on the page.
    text = f"# %%compilescope {line}\n{cell}"
    with capture(dir=given.dir, **how) as seen, _as_this_cell(shell), _held_back(shell) as drawn:
        result = shell.run_cell(text, store_history=False)
    shell.user_ns[given.name] = seen
    if not given.quiet:
        _show(seen, explained=given.explain)
    error: Any = result.error_before_exec or result.error_in_exec
    if error is not None:
        # The cell's own error: whoever runs notebooks reads its class and message from here.
        with suppress(AttributeError, TypeError):
            error._render_traceback_ = lambda: drawn[-1] if drawn else []
    return cast("BaseException | None", error)


@contextmanager
def _held_back(shell: Any) -> Iterator[list[list[str]]]:
    """Tracebacks as they would be shown: the cell that runs the magic shows the last of them."""
    drawn: list[list[str]] = []

    def keep(kind: Any, error: Any, lines: list[str]) -> None:
        drawn.append(lines)

    shell._showtraceback = keep
    try:
        yield drawn
    finally:
        del shell._showtraceback


@contextmanager
def _as_this_cell(shell: Any) -> Iterator[None]:
    """What runs within is code of the cell that runs now. IPython 9 numbers it as the next one; the
    number that it writes before results is right in 8 and 9."""
    compiler, number = shell.compile, shell.displayhook.prompt_count

    def cache(text: str, _: int = 0, raw_code: str | None = None) -> Any:
        return type(compiler).cache(compiler, text, number, raw_code)

    compiler.cache = cache
    try:
        yield
    finally:
        del compiler.cache


def _show(seen: Capture, *, explained: bool) -> None:
    drawn = seen.explain() if explained else seen
    if not show_html(drawn._repr_html_()):
        write(f"{drawn if explained else seen.summary()}\n")


def load_ipython_extension(shell: Any) -> None:
    """IPython calls it for `%load_ext compilescope`."""
    try:
        from IPython.core.error import UsageError
    except ImportError:
        raise ToolError(
            "%load_ext compilescope needs IPython, which is not installed.",
            'Install it with: pip install "compilescope[notebook]"',
        ) from None

    def compilescope(line: str, cell: str) -> None:
        try:
            failed = run_cell(shell, line, cell)
        except (ToolError, ValueError) as error:
            # One sentence, as for the shell's own magics; shlex raises ValueError for open quotes.
            words = [str(error), getattr(error, "hint", "")]
            raise UsageError(" ".join(word for word in words if word)) from None
        if failed is not None:
            raise failed

    compilescope.__doc__ = run_cell.__doc__
    shell.register_magic_function(compilescope, "cell", "compilescope")


def unload_ipython_extension(shell: Any) -> None:
    shell.magics_manager.magics["cell"].pop("compilescope", None)
