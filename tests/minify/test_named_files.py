"""Files that a program names are copied before it runs: it may delete them."""

from __future__ import annotations

from pathlib import Path

from compilescope.change.minify.source.program_sandbox import ProgramFiles, ProgramSandbox, lay_out


def test_a_program_that_deletes_its_input(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "in.txt").write_text("x")
    (tmp_path / "folder" / "y.txt").write_text("y")
    names = ("in.txt", "folder", "never-there.txt")
    files = tuple((name, str(tmp_path / name)) for name in names)
    with ProgramSandbox(ProgramFiles((), files), limit_s=60.0, memory_bytes=None) as stage:
        (tmp_path / "in.txt").unlink()
        copies = dict(stage.surroundings.files)
        assert list(copies) == ["in.txt", "folder"]
        again = tmp_path / "again"
        lay_out(stage.surroundings.files, again)
        assert (again / "in.txt").read_text() == "x"
        assert (again / "folder" / "y.txt").read_text() == "y"
    assert not Path(copies["in.txt"]).exists()
