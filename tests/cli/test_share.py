"""`compilescope runs export` and `compilescope runs import`, as a user runs them."""

from __future__ import annotations

import importlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

import samples
from compilescope.apps.cli.commands.explain import COMMAND as EXPLAIN
from compilescope.apps.cli.commands.runs.export import COMMAND as EXPORT
from compilescope.apps.cli.commands.show import COMMAND as SHOW
from compilescope.base.errors import ToolError
from compilescope.record.header import read_header, write_header
from sharing import secret_programs

# `import` is a word of Python's: the module can only be named in a string.
IMPORT = importlib.import_module("compilescope.apps.cli.commands.runs.import").COMMAND
RUN = "abc123-full"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILESCOPE_DIR", str(tmp_path / "home"))
    samples.store(samples.RUNS["full"], tmp_path / "home", RUN)
    return tmp_path / "home"


def call(command: Any, *words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def told(command: Any, *words: object) -> dict[str, Any]:
    return json.loads(call(command, *words, "--json").stdout)


def problem(command: Any, *words: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        call(command, *words)
    return caught.value


def test_export_and_import(home: Path, tmp_path: Path) -> None:
    done = call(EXPORT)
    assert re.fullmatch(rf"Exported the run {RUN} to {RUN}.zip: 2 files, \d+ kB\.\n", done.stdout)
    assert done.stderr == ""
    done = call(IMPORT, f"{RUN}.zip", "--dir", tmp_path / "other")
    assert done.stdout == f"Imported {RUN}: 2 files.\n"
    assert f"compilescope show --dir {tmp_path / 'other'} {RUN}" in done.stderr
    again = call(IMPORT, f"{RUN}.zip", "--dir", tmp_path / "other")
    assert again.stdout == f"The run {RUN} was already imported.\n"
    for command in (SHOW, EXPLAIN):
        one, two = call(command, RUN), call(command, RUN, "--dir", tmp_path / "other")
        # But for the folder in the command that shows more.
        assert one.stdout == two.stdout.replace(f" --dir {tmp_path / 'other'}", "")
        assert one.exit_code == two.exit_code == 0


def test_as_json(home: Path, tmp_path: Path) -> None:
    exported = told(EXPORT, "abc", "-o", "run.zip")
    assert exported == {
        "run": RUN,
        "file": "run.zip",
        "bytes": (tmp_path / "run.zip").stat().st_size,
        "files": 2,
        "redacted": False,
        "same_diagnosis": None,
    }
    imported = told(IMPORT, "run.zip", "--dir", "other")
    assert (imported["run"], imported["path"]) == (RUN, f"other/{RUN}")
    assert (imported["files"], imported["unread"], imported["already_there"]) == (2, 0, False)
    assert told(IMPORT, "run.zip", "--dir", "other")["already_there"] is True


def test_redacted(home: Path, tmp_path: Path) -> None:
    exported = told(EXPORT, "--redact")
    assert exported["redacted"] is True and exported["same_diagnosis"] is True
    assert re.fullmatch(r"[0-9a-f]{6}-redacted", exported["run"])
    assert exported["file"] == f"{exported['run']}.zip", "the run's own id would tell its script"
    assert told(IMPORT, exported["file"])["run"] == exported["run"]
    before, after = told(SHOW, RUN), told(SHOW, exported["run"])
    assert [s["gb_id"] for s in before["sites"]] == [s["gb_id"] for s in after["sites"]]
    assert "ada" not in json.dumps(after) and "model.py" not in json.dumps(after)
    for command in (SHOW, EXPLAIN):
        assert call(command, exported["run"]).exit_code == 0
    done = call(EXPORT, RUN, "--redact", "-o", "r.zip")
    assert done.stdout.startswith(f"Exported a redacted copy of {RUN} to r.zip: ")


def test_nothing_is_overwritten(home: Path, tmp_path: Path) -> None:
    (tmp_path / "run.zip").write_text("precious")
    error = problem(EXPORT, "-o", "run.zip")
    assert "run.zip already exists" in error.message and "--force" in error.hint
    assert (tmp_path / "run.zip").read_text() == "precious"
    assert call(EXPORT, "-o", "run.zip", "--force").exit_code == 0
    assert zipfile.is_zipfile(tmp_path / "run.zip")


def test_where_it_cannot_be_written(home: Path, tmp_path: Path) -> None:
    assert "is a folder" in problem(EXPORT, "-o", tmp_path).message
    assert "no folder" in problem(EXPORT, "-o", "missing/run.zip").message
    assert "No run" in problem(EXPORT, "zzz").message
    assert not list(tmp_path.glob("*.zip"))


def test_a_live_run(home: Path) -> None:
    header = msgspec.structs.replace(
        read_header(home / RUN),
        launcher_pid=os.getpid(),
        host=socket.gethostname(),
        started_ns=time.time_ns(),
        ended_ns=None,
    )
    write_header(home / RUN, header)
    done = call(EXPORT)
    assert done.exit_code == 0 and "still in progress" in done.stderr
    assert call(EXPORT, "--redact").exit_code == 0


def test_another_run_with_that_id(home: Path) -> None:
    call(EXPORT, "-o", "run.zip")
    with (home / RUN / "events-0.jsonl").open("ab") as file:
        file.write(b"garbled\n")
    done = call(IMPORT, "run.zip")
    assert re.fullmatch(
        rf"Imported as \w{{6}}-full: another run here is named {RUN}\.\n", done.stdout
    )
    forced = told(IMPORT, "run.zip", "--force")
    assert forced["already_there"] is True, "it came in under its new id before"


def test_unread_lines_are_told(home: Path) -> None:
    with (home / RUN / "events-0.jsonl").open("ab") as file:
        file.write(b"garbled\nalso\n")
    call(EXPORT, "-o", "run.zip")
    done = call(IMPORT, "run.zip", "--dir", "other")
    assert "2 lines of its events could not be read" in done.stderr
    exported = told(EXPORT, "--redact", "-o", "r.zip")
    assert exported["same_diagnosis"] is True
    assert told(IMPORT, "r.zip")["unread"] == 2


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("MOST_COMPARED", "the reasons only of the first"),
        ("_MOST_CAUSES", "diagnosis was not compared: it has too many causes"),
    ],
)
def test_a_diagnosis_that_is_not_all_compared_is_not_called_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch, bound: str, said: str
) -> None:
    monkeypatch.setattr(f"compilescope.report.sharing.redaction.diagnosis.{bound}", 0)
    done = call(EXPORT, "--redact", "-o", "r.zip", "--json")
    assert json.loads(done.stdout)["same_diagnosis"] is None
    assert said in done.stderr


def test_texts_that_are_not_redacted_word_by_word_are_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilescope.report.sharing.redaction.code._MOST_WORDS", 0)
    done = call(EXPORT, "--redact", "-o", "r.zip", "--json")
    assert re.search(r"Note: \d+ texts are replaced entirely: the run has too many", done.stderr)


def command_line(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compilescope", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_the_commands_are_there(tmp_path: Path) -> None:
    help_text = command_line("runs", "--help").stdout
    assert re.search(r"^  export\b", help_text, re.M) and re.search(r"^  import\b", help_text, re.M)
    assert "Usage: " in command_line("import", "--help").stdout
    done = command_line("import", tmp_path / "missing.zip")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"compilescope: error: There is no file {tmp_path}/missing.zip.\n"


@pytest.mark.torch
@pytest.mark.slow
def test_secrets_of_a_whole_program(tmp_path: Path) -> None:
    """Recorded, redacted and unpacked by the commands: the command line and test ids too."""
    project = secret_programs.write(tmp_path)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COMPILESCOPE_"))}
    runs = (
        (secret_programs.SCRIPT, "--qzxflag=qzxvalue", "qzx free text", "--qzxnumber", "7654321"),
        ("--pytest", secret_programs.SUITE, "-q", "-p", "no:cacheprovider"),
    )
    for number, words in enumerate(runs):
        done = command_line("run", "-q", "--dir", tmp_path / "home", *words, cwd=project, env=env)
        assert done.returncode == 0, done.stderr
        target = tmp_path / f"{number}.zip"
        done = command_line(
            "export", "--dir", tmp_path / "home", "--redact", "-o", target, "--json"
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["same_diagnosis"] is True
        with zipfile.ZipFile(target) as archive:
            for name in archive.namelist():
                assert secret_programs.leaks(archive.read(name).decode()) == [], name
        imported = command_line("import", target, "--dir", tmp_path / "other", "--json")
        name = json.loads(imported.stdout)["run"]
        for command in ("show", "explain"):
            shown = command_line(command, name, "--dir", tmp_path / "other")
            assert shown.returncode == 0 and secret_programs.MARK not in shown.stdout.lower()
