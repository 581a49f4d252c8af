"""Files for a user: in one step, and never over one that is not ours."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.base.outputs import check_output, is_report, is_repro, write_output
from compilescope.record.home import make_home


def test_only_ours_is_replaced_without_force(tmp_path: Path) -> None:
    path = tmp_path / "out.md"
    check_output(path, ours=is_report)
    for title in ("my notes on compilescope", "# compilescope notes", "compilescope, by me"):
        path.write_text(f"{title}\n")
        with pytest.raises(ToolError, match="compilescope did not write it") as error:
            check_output(path, ours=is_report)
        assert "--force" in error.value.hint
    check_output(path, force=True)
    path.write_text("# compilescope 1fa431-prog\n")
    check_output(path, ours=is_report)
    path.write_bytes(b"")
    check_output(path)


@pytest.mark.parametrize("place", ["folder", "none/out.md"])
def test_what_cannot_be_written_is_said_before_the_work(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolError, match="Cannot write"):
        check_output(tmp_path / place, force=True)


def test_a_read_only_folder_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path))
    for name in ("new.html", "old.html"):
        (tmp_path / "old.html").touch()
        with pytest.raises(ToolError, match="is not writable"):
            check_output(tmp_path / name)
    check_output(Path("/dev/null"))


@pytest.mark.parametrize(
    "head",
    [
        "<html><title>prog.py · compilescope</title>",
        "# compilescope 1fa431-prog\n",
        "compilescope 1fa431-prog\nprog.py",
        "# compilescope report on 2 runs\n",
        '{\n "schema": 1,\n "overview": null,',
        '{"runs": [{"tool": {"driver": {\n "name": "compilescope",',
        '{"otherData":{"made_by":"compilescope"}}',
        '<?xml version="1.0"?><testsuites name="compilescope" tests="1">',
    ],
)
def test_reports_are_known_by_their_marks(head: str) -> None:
    assert is_report(head.encode()) and not is_repro(head.encode())


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "real.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_output(link, b"new")
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    write_output(tmp_path / ("n" * 250), b"long")
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "n" * 250, "real.txt"]


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_output(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, b"said")
    reader.join()
    assert heard == [b"said"] and pipe.is_fifo()


def test_git_ignores_only_folders_that_are_ours(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / ".gitignore").write_text("build/\n")
    for home in (tmp_path, theirs, tmp_path / "a" / "new", tmp_path / ".compilescope"):
        make_home(home)
        make_home(home)
    assert (tmp_path / ".gitignore").read_text() == "build/\n"
    assert not (theirs / ".gitignore").exists()
    assert (tmp_path / "a" / "new" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / ".compilescope" / ".gitignore").read_text() == "*\n"
