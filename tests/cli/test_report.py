"""`report` and `compare`, as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import called
from samples import full_run, ranks_run, store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store(full_run(), tmp_path / "runs", "aaa111-full")
    store(ranks_run(), tmp_path / "runs", "bbb222-ranks")
    return tmp_path / "runs"


def call(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return called(*words, "--dir", home, cwd=home.parent)


@pytest.mark.parametrize(
    ("form", "mark"),
    [
        ("html", "<!doctype html>"),
        ("md", "# compilescope aaa111-full"),
        ("json", '"schema": 1'),
        ("sarif", '"version": "2.1.0"'),
        ("terminal", "compilescope aaa111-full"),
        ("trace", "traceEvents"),
    ],
)
def test_every_format_to_stdout(home: Path, form: str, mark: str) -> None:
    done = call(home, "report", "aaa", "--format", form)
    assert done.returncode == 0, done.stderr
    assert mark in done.stdout


@pytest.mark.parametrize("name", ["r.html", "r.md", "r.json", "r.sarif", "r.txt"])
def test_the_ending_of_the_file_names_the_format(home: Path, name: str) -> None:
    done = call(home, "report", "aaa", "-o", name)
    assert done.returncode == 0 and done.stdout == "" and f"Wrote {name}" in done.stderr
    text = (home.parent / name).read_text()
    if name.endswith(("json", "sarif")):
        json.loads(text)
    assert "\x1b[" not in text
    assert not list(home.parent.glob("*.part"))


def test_several_runs_in_one_report(home: Path) -> None:
    html = call(home, "report", "aaa", "bbb", "--format", "html").stdout
    assert "aaa111-full" in html and "bbb222-ranks" in html
    data = json.loads(call(home, "report", "aaa", "bbb", "--format", "json").stdout)
    assert [report["run"] for report in data["reports"]] == ["aaa111-full", "bbb222-ranks"]


def test_what_cannot_be_written_is_one_sentence(home: Path) -> None:
    done = call(home, "report", "aaa", "-o", "no/such/folder/r.html")
    assert done.returncode == 2
    assert done.stderr == "compilescope: error: Cannot write no/such/folder/r.html: " + (
        "the folder no/such/folder does not exist.\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "zzz"), "No run in"),
        (("report", "aaa", "--format", "md", "--open"), "--open works with HTML only"),
        (("report", "aaa", "bbb", "--format", "trace"), "A trace covers one run"),
        (("compare", "aaa", "zzz"), "No run in"),
        (("compare", "bbb@0", "bbb@7"), "has no rank 7. Its ranks: 0, 1"),
    ],
)
def test_what_a_user_can_get_wrong(home: Path, words: tuple[str, ...], said: str) -> None:
    done = call(home, *words)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr


def test_open_starts_a_browser_on_the_file(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", "report", "aaa", "--open", "--dir", str(home)],
        capture_output=True,
        text=True,
        cwd=home.parent,
        env={**os.environ, "BROWSER": "echo %s"},
    )
    assert done.returncode == 0, done.stderr
    assert (home.parent / "aaa111-full.html").is_file()


def test_compare_tells_what_came_and_went(home: Path) -> None:
    done = call(home, "compare", "aaa", "bbb")
    assert done.returncode == 0, done.stderr
    assert (
        "no longer present" in done.stdout
        and "compilescope compare aaa111-full bbb222-ranks" in done.stdout
    )
    data = json.loads(call(home, "compare", "aaa", "bbb", "--json").stdout)
    assert {"gone", "new", "moved", "changed", "same", "figures"} <= set(data)


def test_compare_two_ranks(home: Path) -> None:
    data = json.loads(call(home, "compare", "bbb@0", "bbb@1", "--json").stdout)
    assert (data["before"], data["after"]) == ("bbb222-ranks@0", "bbb222-ranks@1")
    assert [finding["rule"] for finding in data["new"]] == ["GB0170"]


@pytest.mark.parametrize("form", ["md", "html", "terminal"])
def test_compare_in_every_format(home: Path, form: str) -> None:
    assert "GB0170" in call(home, "compare", "bbb@0", "bbb@1", "--format", form).stdout


def test_a_run_that_cannot_be_read_is_told_and_left_out(home: Path) -> None:
    (home / "ccc333-damaged").mkdir()
    (home / "ccc333-damaged" / "run.json").write_text("garbage")
    done = call(home, "report", "--all", "--format", "json")
    assert done.returncode == 0
    assert "Left out: " in done.stderr and "ccc333-damaged" in done.stderr
