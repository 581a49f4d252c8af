"""Options and output that several commands share."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from compilescope.apps.cli.streams import put_json
from compilescope.base.durations import read_duration, write_duration
from compilescope.base.errors import ToolError
from compilescope.base.plugins import public_modules
from compilescope.base.settings import read_settings, wants_colour
from compilescope.base.texts import one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from compilescope.knowledge.registry.pages import Pages


F = TypeVar("F", bound=Callable[..., Any])


def dir_option(function: F) -> F:
    return click.option(
        "--dir",
        "home",
        type=click.Path(path_type=Path),
        help="Where runs are stored. [default: .compilescope, or COMPILESCOPE_DIR]",
    )(function)


class _RunName(click.types.StringParamType):
    """A run by its id, the start of one, or its folder; a shell completes ids."""

    name = "run"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from compilescope.record.home import list_runs

        # Completing must never print: what can't be read is not offered.
        with suppress(Exception):
            runs, _ = list_runs(home_folder(ctx.params.get("home")))
            return [
                CompletionItem(folder.name, help=one_line(" ".join(header.command)))
                for folder, header in runs
                if folder.name.startswith(incomplete)
            ]
        return []


RUN_NAME = _RunName()


_python = ""
"""What `--python` names."""


def python_option(function: F) -> F:
    """For commands that run a user's code."""
    return click.option(
        "--python",
        metavar="PATH",
        callback=_go_on_with,
        is_eager=True,
        expose_value=False,
        help="Run the program with this Python or virtual environment: one that has torch.",
    )(function)


def in_python() -> list[str]:
    """The option that names the same Python again, for a command to copy."""
    return ["--python", _python] if _python else []


def _go_on_with(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is None or context.resilient_parsing:
        return
    from compilescope.apps.cli.other_python import become, is_linked

    global _python
    _python = value
    if not is_linked():
        become(value)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def home_folder(given: Path | None) -> Path:
    return given if given is not None else read_settings().home


def in_home(given: Path | None) -> list[str]:
    """The option that names the same folder again, for a command to copy."""
    return [] if given is None else ["--dir", str(given)]


def registry_pages() -> Pages:
    """Where links to graph breaks lead: COMPILESCOPE_REGISTRY_SITE, the project's registry-site,
    or the site that was built on this machine."""
    from compilescope.base.project import read_project
    from compilescope.knowledge.registry.pages import find_pages

    try:
        wanted = read_project().registry_site
    except ToolError:
        wanted = None  # `check` says what is wrong with the file; a report can do without it.
    return find_pages(wanted)


def has_colour(stream: IO[str]) -> bool:
    wanted = wants_colour()
    return stream.isatty() if wanted is None else wanted


def report_width() -> int:
    import shutil

    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 100))


def print_json(value: Any) -> None:
    put_json(value, indent=2)


# Options and helpers for files that commands write for the user.


def force_option(function: F) -> F:
    """Of commands that write files."""
    words = "Overwrite files that compilescope did not write."
    return click.option("--force", is_flag=True, help=words)(function)


def delivery_options(function: F) -> F:
    """Of commands that hand out a changed program."""
    words = "Write even if git has uncommitted changes or the file exists."
    function = click.option("--force", is_flag=True, help=words)(function)
    words = "As --script, but write FILE."
    file = click.Path(path_type=Path)
    return click.option("--output", type=file, metavar="FILE", help=words)(function)


def isolated_option(function: F) -> F:
    """Of commands that run a program many times."""
    words = "Run the program in a temporary copy of the working folder."
    return click.option("--isolated", is_flag=True, help=words)(function)


def isolated_by_default_option(when: str) -> Callable[[F], F]:
    """None where neither was given: it depends on `when`."""
    words = f"Run the program in a temporary copy of the working folder. [default: with {when}]"
    return click.option("--isolated/--no-isolated", default=None, help=words)


# Two limits of time, with one name each: `--limit` for one run, `--budget` for the whole command.


RUN_LIMIT_S = 300.0
"""The default of `--limit` for one run of a program. Chosen: room to compile on a busy machine."""


class _Duration(click.types.StringParamType):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return float(value)
        seconds = read_duration(value)
        if seconds is None:
            name = param.opts[0] if param is not None else ""
            raise ToolError(f"{value} is not a duration.", hint=f"Use {name} 90s, 2m or 1h.")
        return seconds


class _OldName(click.Option):
    """An earlier name of the option `of`: hidden, it sets what that option sets."""

    def __init__(self, *args: Any, of: str, **more: Any) -> None:
        more |= {"hidden": True, "expose_value": False}
        super().__init__(*args, **more)
        self._of = of

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        name, self.name = self.name, self._of
        super().add_to_parser(parser, ctx)
        self.name = name


def limit_option(
    of: str, default: float | None = None, *, usual: str = "", old_name: str | None = None
) -> Callable[[F], F]:
    """The time limit for one run, in seconds. `usual` says what holds without `default`."""
    words = f" [default: {usual or (write_duration(default) if default else 'none')}]"
    return _time_option("limit", f"Time limit for {of}: 90s, 2m, 1h.{words}", default, old_name)


def budget_option(of: str, then: str = "", *, old_name: str | None = None) -> Callable[[F], F]:
    """The time limit for the whole command, in seconds. `then`: what it does when time is over."""
    more = f" {then}" if then else ""
    return _time_option("budget", f"Time limit for {of}: 90s, 2m, 1h.{more}", None, old_name)


def _time_option(
    name: str, words: str, default: float | None, old_name: str | None
) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        if old_name is not None:
            function = click.option(old_name, cls=_OldName, of=name)(function)
        return click.option(
            f"--{name}", type=_Duration(), default=default, metavar="TIME", help=words
        )(function)

    return decorate


def write_whole(path: Path, text: str) -> None:
    """Write `text` aside and rename it: a reader, or Ctrl-C, never meets half a file."""
    from compilescope.base.outputs import write_output

    # What a program named cannot always be encoded; the rest of the report can.
    write_output(path, text.encode("utf-8", "backslashreplace"))


class SuggestingGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            import difflib

            names = self.list_commands(ctx)
            near = difflib.get_close_matches(args[0].lower(), names, n=3)
            guess = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{guess}")
        return super().resolve_command(ctx, args)


class FolderGroup(SuggestingGroup):
    """Commands that are the public modules of a package, each imported when it is asked for."""

    folder: ClassVar[ModuleType]
    order: ClassVar[tuple[str, ...]] = ()
    """The names that come first, in this order; the others follow by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = {name.replace("_", "-") for name in public_modules(self.folder)}
        ordered = [name for name in self.order if name in names]
        return ordered + sorted(names - set(ordered))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = self.import_command(cmd_name).COMMAND
        return command

    def import_command(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self.folder.__name__}.{name.replace('-', '_')}")
