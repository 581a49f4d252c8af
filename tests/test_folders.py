"""No path leads out of the folders that the user allowed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from compilescope.base import folders as module
from compilescope.base.errors import ToolError
from compilescope.base.folders import Folders


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a second is not enough for some folders."""
    monkeypatch.setattr(module, "_SEARCH_S", 600.0)


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """With a file inside, and a secret beside it."""
    folder = tmp_path / "allowed"
    (folder / "models").mkdir(parents=True)
    (folder / "train.py").write_text("x = 1\n")
    (folder / "models" / "small.py").write_text("y = 2\n")
    (tmp_path / "secret.py").write_text("password = 1\n")
    (tmp_path / "allowed-too").mkdir()
    (tmp_path / "allowed-too" / "other.py").write_text("z = 3\n")
    return folder


def test_what_lies_inside_passes(allowed: Path) -> None:
    folders = Folders([allowed])
    script = allowed / "models" / "small.py"
    assert folders.check(script) == script.resolve()
    assert folders.check(str(allowed / "models" / ".." / "train.py")) == allowed / "train.py"
    assert folders.check("models/small.py") == script
    assert folders.check(allowed) == allowed
    assert folders.check_script("train.py") == allowed / "train.py"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "{allowed}/../secret.py",
        "../secret.py",
        "models/../../secret.py",
        "{allowed}/models/../../../../../../../../etc/passwd",
        "{allowed}-too/other.py",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/proc/self/environ",
        "/dev/stdin",
        "/dev/fd/0",
        "/dev/zero",
        "//etc/passwd",
        "~/.ssh/id_rsa",
        "file:///etc/passwd",
        "",
        "   ",
        "{allowed}/train.py\0.txt",
        "{allowed}/" + "a" * 5000,
        "{allowed}/" + "a" * 300,
        "{allowed}/\udcff.py",
        "{allowed}/missing.py",
        "{allowed}/train.py/..%2f..%2fsecret.py",
        "..\\secret.py",
    ],
)
def test_what_lies_outside_is_refused(path: str, allowed: Path) -> None:
    with pytest.raises(ToolError):
        Folders([allowed]).check(path.replace("{allowed}", str(allowed)))


def test_with_no_folder_allowed_everything_is_refused(allowed: Path) -> None:
    with pytest.raises(ToolError, match="outside"):
        Folders([]).check(allowed / "train.py")


def test_whether_a_file_outside_exists_is_not_said(allowed: Path) -> None:
    said = set()
    for name in ("secret.py", "nothing.py"):
        with pytest.raises(ToolError) as refused:
            Folders([allowed]).check(allowed.parent / name)
        said.add(refused.value.message.replace(name, "NAME"))
    assert len(said) == 1


def test_links_are_followed_to_where_they_lead(allowed: Path) -> None:
    (allowed / "out.py").symlink_to(allowed.parent / "secret.py")
    (allowed / "outside").symlink_to(allowed.parent)
    (allowed / "in.py").symlink_to(allowed / "train.py")
    (allowed / "circle").symlink_to(allowed / "circle")
    (allowed / "root").symlink_to("/proc/self/root")
    folders = Folders([allowed])
    assert folders.check(allowed / "in.py") == allowed / "train.py"
    for name in ("out.py", "outside/secret.py", "outside", "circle", "root/etc/passwd"):
        with pytest.raises(ToolError):
            folders.check(allowed / name)
    listed = folders.browse(allowed)
    assert [path.name for path in listed.folders] == ["models"]
    assert allowed / "train.py" in listed.scripts and "out.py" not in str(listed)
    assert set(folders.scripts()) == {allowed / "train.py", allowed / "models" / "small.py"}


def test_an_allowed_folder_may_be_a_link_itself(allowed: Path) -> None:
    link = allowed.parent / "link"
    link.symlink_to(allowed)
    assert Folders([link]).check(link / "train.py") == allowed / "train.py"


def test_pipes_sockets_and_devices_are_no_files(
    allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(allowed / "pipe.py")
    # The address of a socket has room for a hundred letters.
    monkeypatch.chdir(allowed)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.py")
        for name in ("pipe.py", "socket.py"):
            with pytest.raises(ToolError):
                Folders([allowed]).check_script(allowed / name)
        assert [path.name for path in Folders([allowed]).browse(allowed).scripts] == ["train.py"]
    # Whoever allows everything still gets no devices and no way through /proc.
    for path in ("/dev/null", "/proc/self/status", "/proc/self/mem"):
        with pytest.raises(ToolError):
            Folders([Path("/")]).check(path)


def test_a_script_is_a_python_file(allowed: Path) -> None:
    (allowed / "notes.txt").write_text("")
    (allowed / "folder.py").mkdir()
    for name in ("notes.txt", "folder.py", "models"):
        with pytest.raises(ToolError, match="is not a Python file"):
            Folders([allowed]).check_script(allowed / name)


def test_browse_shows_folders_and_python_files_only(allowed: Path) -> None:
    for name in (".git", "__pycache__", "site-packages", "env", ".hidden"):
        (allowed / name).mkdir()
        (allowed / name / "inner.py").write_text("")
    (allowed / "env" / "pyvenv.cfg").write_text("")
    (allowed / "data.bin").write_bytes(b"")
    (allowed / ".hidden.py").write_text("")
    folders = Folders([allowed])
    listed = folders.browse(allowed)
    assert listed.folders == (allowed / "models",)
    assert listed.scripts == (allowed / "train.py",)
    assert listed.parent is None and listed.complete
    assert folders.browse(allowed / "models").parent == allowed
    assert folders.scripts() == [allowed / "train.py", allowed / "models" / "small.py"]
    with pytest.raises(ToolError, match="is not a folder"):
        folders.browse(allowed / "train.py")


def test_listings_have_an_end(allowed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (allowed / f"s{number:02}.py").write_text("")
    folders = Folders([allowed])
    assert len(folders.scripts(limit=7)) == 7
    monkeypatch.setattr(module, "_MOST_ENTRIES", 10)
    listed = folders.browse(allowed)
    assert len(listed.scripts) + len(listed.folders) == 10 and not listed.complete
    monkeypatch.setattr(module, "_SEARCH_S", 0.0)
    assert folders.scripts() == []


def test_folders_one_inside_the_other_list_a_file_once(allowed: Path) -> None:
    folders = Folders([allowed, allowed / "models", allowed])
    assert folders.folders == (allowed, allowed / "models")
    assert sorted(folders.scripts()) == [allowed / "models" / "small.py", allowed / "train.py"]


def test_a_folder_that_cannot_be_read_is_empty(allowed: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read everything")
    (allowed / "models").chmod(0)
    try:
        assert Folders([allowed]).scripts() == [allowed / "train.py"]
    finally:
        (allowed / "models").chmod(0o755)
