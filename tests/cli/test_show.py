"""`compilescope show`: the summary, everything, one section; and `analyze`, its old name."""

from __future__ import annotations

import json
import os
import pty
import struct
import subprocess
import sys
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest
from click.testing import CliRunner, Result

from compilescope.apps.cli.main import group
from samples import big_run, full_run, store


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    store(full_run(), home, "aaa111-full")
    store(big_run(causes=80, graphs=30, events=500), home, "bbb222-big")
    return home


def call(home: Path, *words: str) -> Result:
    return CliRunner().invoke(group, [*words, "--dir", str(home)])


def printed(home: Path, *words: str) -> str:
    done = call(home, *words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("show", "bbb"),
        ("explain", "bbb"),
        ("show", "bbb", "--section", "breaks"),
        ("show", "bbb", "--section", "graphs"),
        ("analyze", "bbb", "--type", "graphs"),
        ("compare", "aaa", "bbb"),
    ],
)
def test_two_screens_and_how_to_see_the_rest(home: Path, words: tuple[str, ...]) -> None:
    text = printed(home, *words)
    assert len(text.splitlines()) < 48
    assert "--all" in text.splitlines()[-1]
    assert len(printed(home, *words, "--all").splitlines()) > 48


def test_everything_is_what_the_report_prints(home: Path) -> None:
    everything = printed(home, "show", "aaa", "--all")
    assert everything == printed(home, "report", "aaa", "--format", "terminal")


@pytest.mark.parametrize("name", ["tree", "timeline", "breaks", "recompiles", "measured"])
def test_one_section(home: Path, name: str) -> None:
    assert printed(home, "show", "aaa", "--section", name).startswith("compilescope aaa111-full")
    seen = json.loads(printed(home, "show", "aaa", "--section", name, "--json"))
    assert (seen["run"], seen["type"]) == ("aaa111-full", name)


def test_a_section_that_the_run_has_not(home: Path) -> None:
    assert "nothing to show under diffs" in printed(home, "show", "aaa", "--section", "diffs")
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", "show", "--section", "x", "--dir", str(home)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "There is no section x." in done.stderr
    assert "guards, graphs, constraints" in done.stderr


@pytest.mark.parametrize("side", ["guards", "graphs", "constraints"])
def test_analyze_is_the_old_name(home: Path, side: str) -> None:
    for form in ((), ("--json",), ("--all",)):
        old = printed(home, "analyze", "aaa", "--type", side, *form)
        assert old == printed(home, "show", "aaa", "--section", side, *form)


def test_summaries_are_equal_too(home: Path) -> None:
    assert printed(home, "analyze", "aaa") == printed(home, "show", "aaa")


def test_markdown_of_a_summary(home: Path) -> None:
    text = printed(home, "show", "bbb", "--format", "md")
    assert len(text.encode()) <= 60_000 and "## Causes" in text


def test_a_higher_terminal_shows_more(home: Path) -> None:
    command = [sys.executable, "-m", "compilescope", "show", "bbb", "--dir", str(home)]
    lines = {}
    for height in (15, 40):
        ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", height, 80, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("LINES", "COLUMNS")}
        with subprocess.Popen(command, stdout=theirs, env=environment) as process:
            os.close(theirs)
            text = b""
            while True:
                try:
                    piece = os.read(ours, 65536)
                except OSError:
                    break
                if not piece:
                    break
                text += piece
        os.close(ours)
        assert process.returncode == 0
        lines[height] = text.count(b"\n")
    assert lines[15] < 30 < lines[40] < 80


def test_a_long_list_of_runs(tmp_path: Path) -> None:
    for number in range(60):
        store(full_run(), tmp_path, f"a{number:05}-full")
    assert printed(tmp_path, "list").count("-full") == 60, "in a pipe nothing is left out"
