"""`compilescope runs tag` and `compilescope runs list --tag`, as a user runs them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import samples
from compilescope.apps.cli.commands.runs.export import COMMAND as EXPORT
from compilescope.apps.cli.commands.runs.list import COMMAND as LIST
from compilescope.apps.cli.commands.runs.tag import COMMAND as TAG
from compilescope.base.errors import ToolError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILESCOPE_DIR", str(tmp_path / "home"))
    for name in ("aaa-full", "bbb-full"):
        samples.store(samples.RUNS["full"], tmp_path / "home", name)
    return tmp_path / "home"


def call(command: Any, *words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def told(command: Any, *words: object) -> Any:
    return json.loads(call(command, *words, "--json").stdout)


def test_tags_are_added_removed_and_shown(home: Path) -> None:
    assert call(TAG, "aaa").stdout == "aaa-full: no tags\n"
    assert call(TAG, "aaa", "base", "a100,fp16", "--note", "Before.").stdout == (
        "aaa-full: base, a100, fp16\nBefore.\n"
    )
    assert told(TAG, "aaa", "new", "--remove", "base") == {
        "run": "aaa-full",
        "tags": ["a100", "fp16", "new"],
        "note": "Before.",
    }
    assert told(TAG, "aaa", "--note", "")["note"] == ""
    assert told(TAG, "aaa")["tags"] == ["a100", "fp16", "new"]


def test_runs_are_listed_by_tag(home: Path) -> None:
    call(TAG, "bbb", "base", "--note", "Why.")
    assert [run["run"] for run in told(LIST, "--tag", "base")["runs"]] == ["bbb-full"]
    by_run = {run["run"]: (run["tags"], run["note"]) for run in told(LIST)["runs"]}
    assert by_run == {"aaa-full": ([], ""), "bbb-full": (["base"], "Why.")}
    assert "#base" in call(LIST).stdout
    assert "has the tag 'other'" in call(LIST, "--tag", "other").stderr


def test_what_cannot_be_done_is_one_sentence(home: Path) -> None:
    with pytest.raises(ToolError, match="has no tag 'base'"):
        call(TAG, "aaa", "--remove", "base")
    with pytest.raises(ToolError, match="1 to 40 characters"):
        call(TAG, "aaa", "x" * 50)
    (home / "aaa-full" / "labels.json").write_text("{")
    with pytest.raises(ToolError, match="is damaged"):
        call(TAG, "aaa")
    assert "aaa-full" in call(LIST).stdout
    assert told(TAG, "aaa", "base")["tags"] == ["base"]


def test_a_redacted_export_leaves_them_out(home: Path) -> None:
    call(TAG, "aaa", "secretproject", "--note", "For secretcustomer.")
    call(EXPORT, "aaa", "-o", "plain.zip")
    call(EXPORT, "aaa", "-o", "redacted.zip", "--redact")
    assert "labels.json" in zipfile.ZipFile("plain.zip").namelist()
    redacted = zipfile.ZipFile("redacted.zip")
    everything = b"".join(redacted.read(name) for name in redacted.namelist())
    assert b"secret" not in everything
