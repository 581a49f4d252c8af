"""`compilescope --help`: every command under its heading."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from compilescope.apps.cli import commands
from compilescope.apps.cli.main import GROUPS, OLD_NAMES, group
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
