"""`--write`: all files or none, as they were but for the lines that changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from compilescope.base.errors import ToolError
from compilescope.change.repair.delivery import stored_fix
from compilescope.change.repair.delivery.stored_fix import standing_of, write_files


def _write(folder: Path, **texts: tuple[str, str]) -> list[str]:
    """(as it was read, as it shall be) by name."""
    paths = {name: str(folder / f"{name}.py") for name in texts}
    files = {paths[name]: new for name, (_, new) in texts.items()}
    return write_files(files, {paths[name]: old for name, (old, _) in texts.items()})


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_ends_marks_encodings_modes_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "crlf.py").write_bytes(b"\xef\xbb\xbfx = 1\r\ny = 2\r\n")
    (tmp_path / "old.py").write_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    (tmp_path / "real.py").write_text("x = 1")
    (tmp_path / "real.py").chmod(0o754)
    (tmp_path / "link.py").symlink_to("real.py")
    _write(
        tmp_path,
        crlf=("x = 1\r\ny = 2\r\n", "x = 3\r\ny = 2\r\n"),
        old=("# coding: latin-1\nx = 'é'\n", "# coding: latin-1\nx = 'éé'\n"),
        link=("x = 1", "x = 2"),
    )
    assert (tmp_path / "crlf.py").read_bytes() == b"\xef\xbb\xbfx = 3\r\ny = 2\r\n"
    assert (tmp_path / "old.py").read_bytes().endswith(b"x = '\xe9\xe9'\n")
    assert (tmp_path / "link.py").is_symlink() and (tmp_path / "real.py").read_text() == "x = 2"
    assert (tmp_path / "real.py").stat().st_mode & 0o777 == 0o754
    assert _names(tmp_path) == ["crlf.py", "link.py", "old.py", "real.py"]


def test_a_text_that_was_read_with_plain_line_ends_gets_its_own_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\ny = 2\r\n")
    _write(tmp_path, a=("x = 1\ny = 2\n", "x = 3\ny = 2\n"))
    assert (tmp_path / "a.py").read_bytes() == b"x = 3\r\ny = 2\r\n"


@pytest.mark.parametrize("name", ["changed", "gone", "undecodable", "unencodable", "locked"])
def test_one_that_cannot_be_written_stops_all(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    new = "y = 2\n"
    path = tmp_path / "b.py"
    if name == "changed":
        path.write_text("y = 1  # by an editor\n")
    elif name == "undecodable":
        path.write_bytes(b"y = '\xff'\n")
    elif name == "unencodable":
        path.write_text("# coding: ascii\n")
        new = "# coding: ascii\ny = 'é'\n"
    elif name == "locked":
        path.write_text("y = 1\n")
        path.chmod(0o444)
        if os.access(path, os.W_OK):
            pytest.skip("root may write anything")
    old = "# coding: ascii\n" if name == "unencodable" else "y = 1\n"
    with pytest.raises(ToolError) as error:
        _write(tmp_path, a=("x = 1\n", "x = 2\n"), b=(old, new))
    assert "b.py" in error.value.message and "\n" not in error.value.message
    assert (tmp_path / "a.py").read_text() == "x = 1\n"
    assert _names(tmp_path) == ["a.py"] + (["b.py"] if name != "gone" else [])


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_a_failure_in_the_middle_takes_the_first_ones_back(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    replace, calls = os.replace, []

    def failing(source: object, target: object) -> None:
        calls.append(target)
        if len(calls) == 3:
            raise error
        replace(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(stored_fix.os, "replace", failing)
    with pytest.raises((ToolError, KeyboardInterrupt)):
        _write(tmp_path, **{name: ("x = 1\n", "x = 2\n") for name in "abc"})
    assert [(tmp_path / f"{name}.py").read_text() for name in "abc"] == ["x = 1\n"] * 3
    assert _names(tmp_path) == ["a.py", "b.py", "c.py"]


def test_an_interrupt_at_any_line_leaves_all_or_none(tmp_path: Path) -> None:
    names = "abc"
    for name in names:
        (tmp_path / f"{name}.py").write_text("1")
    lines = _interrupted_at(0, tmp_path, names)
    assert lines > 50
    seen = set()
    for at in range(1, lines):
        for name in names:
            (tmp_path / f"{name}.py").write_text("1")
        with pytest.raises(KeyboardInterrupt):
            _interrupted_at(at, tmp_path, names)
        (text,) = {(tmp_path / f"{name}.py").read_text() for name in names}
        seen.add(text)
        assert _names(tmp_path) == ["a.py", "b.py", "c.py"]
    assert seen == {"1", "2"}


def _interrupted_at(at: int, folder: Path, names: str) -> int:
    """Write, with a Ctrl-C at that line of the writer; the lines that were passed."""
    passed = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal passed
        if frame.f_code.co_filename != stored_fix.__file__:
            return None
        if event == "line":
            passed += 1
            if passed == at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        _write(folder, **{name: ("1", "2") for name in names})
    finally:
        sys.settrace(before)
    return passed


def _git(folder: Path, *words: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)


def test_what_git_says(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    files = [tmp_path / "a.py", tmp_path / "sub" / "b.py"]
    for file in files:
        file.write_text("x = 1\n")
    names = [str(file) for file in files]
    assert standing_of(names) == standing_of([]).__class__(kept=False)
    _git(tmp_path, "init", "-q")
    assert "a.py is not committed" in standing_of(names).objection
    _git(tmp_path, "add", "a.py")
    assert "uncommitted changes: a.py" in standing_of([names[0]]).objection
    _git(tmp_path, "commit", "-q", "-m", "x")
    assert standing_of([names[0]]).objection == ""
    assert "b.py is not committed" in standing_of(names).objection
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "y")
    (tmp_path / "other.txt").write_text("untracked\n")
    assert standing_of(names).objection == "" and standing_of(names).kept
    files[1].write_text("x = 2\n")
    assert "uncommitted changes: sub/b.py" in standing_of([names[0]]).objection
    (tmp_path / ".git" / "HEAD").write_text("nonsense\n")
    assert "git could not check" in standing_of(names).objection
