"""`compilescope --help`: every command under its heading."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from compilescope.apps.cli import commands
from compilescope.apps.cli.main import GROUPS, OLD_NAMES, group
from compilescope.base.durations import read_duration, write_duration
from compilescope.base.errors import ToolError
from compilescope.record.header import RunHeader
from compilescope.record.home import create_run


def test_every_command_names_a_known_group() -> None:
    for info in pkgutil.iter_modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{info.name}")
        assert module.GROUP in GROUPS, info.name
        if not module.COMMAND.hidden:
            assert info.name.replace("_", "-") in GROUPS[module.GROUP], info.name


def test_help_lists_each_command_once_under_its_group() -> None:
    text = CliRunner().invoke(group, ["--help"]).output
    lines = text.splitlines()
    for heading, names in GROUPS.items():
        at = lines.index(f"{heading}:")
        listed = [line.split()[0] for line in lines[at + 1 : at + 1 + len(names)]]
        assert [name for name in names if name in listed] == [n for n in listed if n in names]
    assert "  Start with:    compilescope run your_script.py\n" in text
    assert "  In a browser:  compilescope serve\n" in text
    assert "\n  analyze" not in text


@pytest.mark.parametrize("name", OLD_NAMES)
def test_a_command_that_moved_still_has_its_old_name(name: str) -> None:
    run = CliRunner().invoke
    assert f"\n  {name} " not in run(group, ["--help"]).output
    assert f"\n  {name} " in run(group, [OLD_NAMES[name], "--help"]).output
    old, new = run(group, [name, "--help"]), run(group, [OLD_NAMES[name], name, "--help"])
    assert old.exit_code == 0
    assert old.output.split("\n", 1)[1] == new.output.split("\n", 1)[1]


def test_runs_alone_lists_and_takes_the_options_of_list(tmp_path: Path) -> None:
    here = ["--dir", str(tmp_path)]
    create_run(tmp_path, RunHeader(run="a1b2c3-train", tool="1", started_ns=1))
    texts = [
        CliRunner().invoke(group, [*words, "--json", *here]).output
        for words in (["runs"], ["runs", "list"], ["list"])
    ]
    assert "a1b2c3-train" in texts[0] and texts[0] == texts[1] == texts[2]


_LIMITS = {
    ("minify", "--limit-time"): "budget",
    ("minify", "--candidate-time"): "limit",
    ("sweep", "--timeout"): "limit",
    ("bench", "--timeout"): "limit",
    ("learn", "--timeout"): "limit",
    ("registry update", "--timeout"): "limit",
}


def _parsed(command: str, *words: str) -> dict[str, Any]:
    found: click.Command = group
    for name in command.split():
        below = (
            found.get_command(click.Context(found), name)
            if isinstance(found, click.Group)
            else None
        )
        assert below is not None
        found = below
    return found.make_context(command, list(words)).params


@pytest.mark.parametrize(("command", "old"), _LIMITS, ids=" ".join)
def test_a_limit_still_has_its_old_name(command: str, old: str) -> None:
    new = _LIMITS[command, old]
    assert _parsed(command, old, "90")[new] == _parsed(command, f"--{new}", "1m30s")[new] == 90.0
    shown = CliRunner().invoke(group, [*command.split(), "--help"]).output
    assert old not in shown and f"--{new} TIME" in shown


def test_the_old_name_of_a_limit_may_still_follow_a_program() -> None:
    params = _parsed("minify", "train.py", "--limit-time", "5m", "--limit", "3")
    assert (params["budget"], params["limit"]) == (300.0, None)


@pytest.mark.parametrize("text", ["0", "soon", "-3", "2 weeks", "m", "1e3"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ToolError, match=f"{text} is not a duration"):
        _parsed("sweep", "--limit", text)


@pytest.mark.parametrize("seconds", [0.5, 7.0, 60.0, 90.0, 300.0, 3600.0, 5400.0])
def test_a_duration_is_read_as_it_was_written(seconds: float) -> None:
    assert read_duration(write_duration(seconds)) == seconds


@pytest.mark.parametrize(
    "command", ["run", "fix", "tune", "minify", "check", "preflight", "verify"]
)
def test_every_option_of_a_program_command_has_a_heading(command: str) -> None:
    text = CliRunner().invoke(group, [command, "--help"]).output
    others = text.partition("Other options:\n")[2].split("\n")
    names = {line.split()[0].strip(",") for line in others if line.strip().startswith("-")}
    assert names <= {"--list", "-h", "--help"}
