"""`compilescope --help`: every command under its heading."""

from __future__ import annotations

import importlib
import pkgutil

from click.testing import CliRunner

from compilescope.apps.cli import commands
from compilescope.apps.cli.main import GROUPS, group


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
