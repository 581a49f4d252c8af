"""Which file a program begins in, from the command that its user typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.fixes.program_files import main_file_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train.py", "pack/__init__.py", "pack/__main__.py", "pack/infer.py", "tool"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (("train.py", "--epochs", "1"), "train.py"),
        (("./train.py",), "train.py"),
        (("tool",), "tool"),
        (("app",), "app/__main__.py"),
        (("-m", "pack"), "pack/__main__.py"),
        (("-m", "pack.infer", "x"), "pack/infer.py"),
        (("torchrun", "--nproc-per-node", "2", "train.py"), "train.py"),
    ],
)
def test_the_file(command: tuple[str, ...], file: str, folder: Path) -> None:
    assert main_file_of(command, str(folder)) == str(folder / file)


@pytest.mark.parametrize(
    "command", [(), ("-c", "print(1)"), ("-m",), ("-m", "no.such"), ("pytest", "tests")]
)
def test_no_file(command: tuple[str, ...], folder: Path) -> None:
    assert main_file_of(command, str(folder)) == ""
    assert main_file_of(("train.py",), "") == ""
