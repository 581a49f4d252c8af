"""A run that was not recorded here supplies nothing that is executed or written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.record.header import RunHeader, read_header, write_header
from compilescope.record.home import create_run
from compilescope.record.provenance import SEALS, is_recorded_here
from compilescope.record.run_files import PRODUCTS, note_product
from compilescope.report.sharing.archive import import_archive, write_archive
from compilescope.scale.sweep.record import store_url, write_place
from stored_fixes import NEW, OLD, store_search

MARKER = "marker"
COMMAND = ("-c", f"open({MARKER!r}, 'w').close()")


def _call(*words: str) -> object:
    return group(list(words), standalone_mode=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILESCOPE_DIR", str(tmp_path / "runs"))
    return tmp_path / "runs"


def _recorded(home: Path, run: str = "abc123-x", command: tuple[str, ...] = COMMAND) -> Path:
    header = RunHeader(run=run, tool="0", command=command, cwd=str(home.parent), exit_status=0)
    return create_run(home, header)


def _imported(home: Path) -> Path:
    archive = home.parent / "run.zip"
    write_archive(_recorded(home.parent / "theirs"), archive)
    return import_archive(archive, home).path


def _by_hand(home: Path) -> Path:
    folder = home / "abc123-x"
    folder.mkdir(parents=True)
    write_header(folder, RunHeader(run="abc123-x", tool="0", command=COMMAND))
    return folder


def _with_another_command(home: Path) -> Path:
    """Its seal is real, yet of another command."""
    folder = _recorded(home, command=("train.py",))
    write_header(folder, msgspec.structs.replace(read_header(folder), command=COMMAND))
    return folder


def _with_a_seal_of_another_run(home: Path) -> Path:
    folder = _by_hand(home)
    shutil.copy(_recorded(home.parent / "theirs", "def456-y") / SEALS, folder / SEALS)
    return folder


def _with_a_seal_of_another_user(home: Path) -> Path:
    before = os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = str(home.parent / "state")
    try:
        return _recorded(home)
    finally:
        os.environ["XDG_STATE_HOME"] = before


def _with_damaged_seals(home: Path) -> Path:
    folder = _recorded(home)
    (folder / SEALS).write_bytes(b"[" * 100_000)
    return folder


@pytest.mark.parametrize(
    "forge",
    [
        _imported,
        _by_hand,
        _with_another_command,
        _with_a_seal_of_another_run,
        _with_a_seal_of_another_user,
        _with_damaged_seals,
    ],
)
def test_its_command_is_not_run(home: Path, forge: Callable[[Path], Path]) -> None:
    folder = forge(home)
    for named in ("abc123", str(folder)):
        with pytest.raises(ToolError, match="is not known to be recorded by you") as raised:
            _call("fix", "--run", named)
        assert raised.value.exit_code == 2 and "compilescope fix SCRIPT" in raised.value.hint
    assert not (home.parent / MARKER).exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("train.py", "--write", "a b"), "train.py -- --write 'a b'"),
        (("train.py",), "train.py"),
        (("-m", "pip", "install", "x"), "SCRIPT [ARGS]..."),
        (("--write.py",), "SCRIPT [ARGS]..."),
        (("train.py", "`x`\x1b[2J"), "SCRIPT [ARGS]..."),
    ],
)
def test_what_to_type_instead(home: Path, command: tuple[str, ...], words: str) -> None:
    (_recorded(home, command=command) / SEALS).unlink()
    with pytest.raises(ToolError) as raised:
        _call("fix", "--run", "abc123")
    assert f"`compilescope fix {words}`" in raised.value.hint


def test_one_that_was_moved_is_still_ours(home: Path, tmp_path: Path) -> None:
    folder = _recorded(home)
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    assert is_recorded_here(moved, read_header(moved))


def test_one_with_a_name_that_is_not_utf_8_is_ours(home: Path) -> None:
    folder = _recorded(home, command=("caf\udce9.py", "\ud83d"))
    header = read_header(folder)
    assert header.command == ("caf\\xe9.py", "\\ud83d") and is_recorded_here(folder, header)


def test_a_home_that_cannot_keep_a_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(home.parent / "file"))
    folder = _recorded(home)
    assert not (folder / SEALS).exists()
    assert not is_recorded_here(folder, read_header(folder))


def test_the_seal_stays_here(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _recorded(home)
    _call("list", "--artifacts", "--json")
    held = json.loads(capsys.readouterr().out)["runs"][0]["artifacts"]
    assert SEALS not in [each["path"] for each in held]
    assert SEALS not in os.listdir(_imported(home.parent / "others"))


def test_its_fix_is_not_applied(home: Path, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(OLD)
    run = store_search(home, program)
    (home / run / SEALS).unlink()
    with pytest.raises(ToolError, match="is not known to come from your search"):
        _call("fix", "--apply", run, "--force")
    assert program.read_text() == OLD


def test_a_fix_with_other_changes_is_not_applied(home: Path, tmp_path: Path) -> None:
    """The seal is real, yet of another text."""
    program = tmp_path / "train.py"
    program.write_text(OLD)
    run = store_search(home, program)
    (stored,) = (home / run / "artifacts").glob("*.json")
    text = stored.read_text()
    assert "torch.where" in text
    stored.write_text(text.replace("torch.where", "evil.where"))
    with pytest.raises(ToolError, match="is not known to come from your search"):
        _call("fix", "--apply", run, "--force")
    stored.write_text(text)
    assert _call("fix", "--apply", run, "--force") == 0
    assert program.read_text() == NEW


def test_no_store_of_its_own_is_opened(home: Path) -> None:
    folder = _recorded(home, command=("sweep", "x"))
    write_place(folder, "https://example.org/store")
    assert store_url(folder) == "https://example.org/store"
    (folder / SEALS).unlink()
    assert store_url(folder) == ""


def test_a_link_in_its_folder_is_not_written_through(home: Path, tmp_path: Path) -> None:
    folder = _recorded(home)
    (tmp_path / "own").write_text("mine\n")
    (folder / PRODUCTS).symlink_to(tmp_path / "own")
    note_product(folder, "report", tmp_path / "report.html")
    assert (tmp_path / "own").read_text() == "mine\n"
