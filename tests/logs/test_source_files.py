"""The program's files, where they are at hand: shown if they agree with the log, else said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compilescope.logs.reader import read_logs
from compilescope.logs.source_files import SourceFiles
from compilescope.record.bodies import SourceChecked
from compilescope.record.run import Run, read_run
from compilescope.record.stack import Frame
from logs.consoles import GOLDEN

TEXT = "import torch\n\n\ndef f(x):\n    y = x + 1\n    return y\n"
LOG = "t213.c03_dataif"


def checked(file: str, folder: Path | None, *frames: Frame) -> list[tuple[str, str, int]]:
    files = SourceFiles((str(folder),) if folder is not None else ())
    for frame in frames:
        files.take(frame)
    return [(each.here, each.problem, each.agrees) for each in files.found() if each.file == file]


def test_the_path_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(TEXT)
    name = str(path)
    assert checked(name, None, Frame(name, 5, "f", source="y = x + 1")) == [(name, "", 1)]
    assert checked(name, None, Frame(name, 5, "f")) == [(name, "", 1)]
    # Nothing in the log speaks for it: it may be any file of this machine.
    assert checked(name, None, Frame(name, 5, "<module>")) == []
    assert checked(name, None, Frame(name, 5, "g")) == []
    assert checked(name, None, Frame(name, 5, "f", source="y = x + 2")) == []


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (Frame("/far/p/m.py", 5, "f", source="y = x + 1"), ""),
        (Frame("C:\\far\\p\\m.py", 5, "f"), ""),
        (Frame("/far/p/m.py", 5, "<module>"), ""),
        (Frame("/far/p/m.py", 25, "f"), "the log names line 25, and it has 6 lines"),
        (Frame("/far/p/m.py", 5, "g"), "line 5 is not in `g`"),
        (
            Frame("/far/p/m.py", 5, "f", source="y = x + 2"),
            "line 5 is `y = x + 1`, in the log `y = x + 2`",
        ),
    ],
)
def test_a_folder_that_the_user_names(tmp_path: Path, frame: Frame, problem: str) -> None:
    path = tmp_path / "src" / "p" / "m.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    ((here, said, _),) = checked(frame.file, tmp_path, frame)
    assert (here, said) == (str(path), problem)


def test_of_several_files_the_one_that_agrees(tmp_path: Path) -> None:
    for name, text in (("a", TEXT.replace("+ 1", "+ 3")), ("b", TEXT), ("p", "x = 1\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text(text)
    frame = Frame("/far/p/m.py", 5, "f", source="y = x + 1")
    assert checked(frame.file, tmp_path, frame) == [(str(tmp_path / "b" / "m.py"), "", 1)]


def read(folder: Path, sources: Path) -> Run:
    log = str(GOLDEN / f"{LOG}.log.xz")
    return read_run(read_logs([log], folder, source_folders=(str(sources),)).path)


def test_a_run_keeps_what_agrees(tmp_path: Path) -> None:
    lines = [""] * 30
    for number, text in {6: "    def forward(s, x):", 8: "        if h.mean() > 0:"}.items():
        lines[number - 1] = text
    program = tmp_path / "here" / "c03_dataif.py"
    program.parent.mkdir()
    program.write_text("\n".join(lines))
    run = read(tmp_path / "one", program.parent)
    (told,) = [body for _, body in run.of(SourceChecked)]
    assert "in the log" in told.problem  # Other lines of it are empty here.
    assert run.source_of("/home/user/models/c03_dataif.py") is None
    shutil.rmtree(tmp_path / "one")
    program.unlink()
    assert not list(read(tmp_path / "one", program.parent).of(SourceChecked))
