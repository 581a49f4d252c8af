"""A stored fix into the user's files: only what was verified, onto what it was verified on."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.change.fixes.stored import StoredFix, stored_fix
from compilescope.change.repair.delivery.stored_fix import AppliedFix, apply_stored, file_states
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import FixOutcome
from compilescope.record.fix_search import FixedFile
from compilescope.record.run import read_run
from compilescope.report.sections.fixes import verdict_of
from compilescope.report.sharing.redaction.run import redact
from stored_fixes import NEW, OLD, store_search


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "train.py"
    path.parent.mkdir()
    path.write_text(OLD)
    return path


def stored(program: Path, **fields: object) -> StoredFix:
    home = program.parent.parent / "home"
    run = store_search(home, program, f"{len(list(home.glob('*'))):06x}-train", **fields)
    fix = stored_fix(read_run(home / run))
    assert fix is not None
    return fix


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_it_is_written_once(program: Path) -> None:
    fix = stored(program)
    done = apply_stored(fix, force=False)
    assert done.written == (str(program),)
    assert program.read_text() == NEW
    again = apply_stored(fix, force=False)
    assert again == AppliedFix(already=True)


def test_git_has_the_way_back(program: Path) -> None:
    git(program.parent, "init", "-q")
    git(program.parent, "add", ".")
    git(program.parent, "commit", "-qm", "first")
    fix = stored(program)
    done = apply_stored(fix, force=False, folder=str(program.parent))
    assert program.read_text() == NEW
    assert done.undo == f"git -C {program.parent} checkout -- train.py"
    subprocess.run(done.undo, shell=True, check=True, cwd="/", capture_output=True)
    assert program.read_text() == OLD


def test_uncommitted_changes_are_in_the_way(program: Path) -> None:
    other = program.with_name("other.py")
    other.write_text("x = 1\n")
    git(program.parent, "init", "-q")
    git(program.parent, "add", ".")
    git(program.parent, "commit", "-qm", "first")
    other.write_text("x = 2\n")
    fix = stored(program)
    with pytest.raises(ToolError, match=r"uncommitted changes: other\.py") as refused:
        apply_stored(fix, force=False, hint="Tick the box.")
    assert refused.value.hint == "Tick the box."
    assert program.read_text() == OLD
    done = apply_stored(fix, force=True)
    assert program.read_text() == NEW
    assert not done.undo and "reverse the diff" in done.remarks[0]


def test_a_changed_file_is_named_and_nothing_is_written(program: Path) -> None:
    other = program.with_name("layers.py")
    other.write_text("a\n")
    files = {str(program): NEW, str(other): "b\n"}
    fix = stored(program, files=files, originals={str(program): OLD, str(other): "a\n"})
    other.write_text("edited\n")
    with pytest.raises(ToolError, match=r"layers\.py changed since the fix was verified"):
        apply_stored(fix, force=True)
    assert program.read_text() == OLD
    other.write_text("a\n")
    assert apply_stored(fix, force=True).written == (str(other), str(program))


def test_half_of_it_is_not_already_applied(program: Path) -> None:
    other = program.with_name("layers.py")
    other.write_text("b\n")
    files = {str(program): NEW, str(other): "b\n"}
    fix = stored(program, files=files, originals={str(program): OLD, str(other): "a\n"})
    assert [each.state for each in file_states(fix)] == ["applied", "ready"]
    with pytest.raises(ToolError, match=r"layers\.py already has the fix"):
        apply_stored(fix, force=True)
    assert program.read_text() == OLD


def test_a_deleted_file(program: Path) -> None:
    fix = stored(program)
    program.unlink()
    with pytest.raises(ToolError, match="no longer exists"):
        apply_stored(fix, force=True)


def test_a_link_out_of_the_folder(program: Path, tmp_path: Path) -> None:
    def check(path: str) -> None:
        if not Path(path).resolve().is_relative_to(program.parent):
            raise ToolError(f"{path} is outside.")

    fix = stored(program)
    outside = tmp_path / "outside.py"
    shutil.move(program, outside)
    program.symlink_to(outside)
    with pytest.raises(ToolError, match="is outside"):
        apply_stored(fix, force=True, check=check)
    assert outside.read_text() == OLD


def test_files_of_packages_are_not_the_users(program: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "site-packages" / "nets" / "layer.py"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("a\n")
    fix = stored(program, files={str(theirs): "b\n"}, originals={str(theirs): "a\n"})
    with pytest.raises(ToolError, match="is not your file"):
        apply_stored(fix, force=True)
    # Nor where a link leads to one.
    program.unlink()
    program.symlink_to(theirs)
    fix = stored(program, files={str(program): "b\n"}, originals={str(program): "a\n"})
    with pytest.raises(ToolError, match="is not your file"):
        apply_stored(fix, force=True)
    assert theirs.read_text() == "a\n"


@pytest.mark.parametrize("path", ["train.py", "../train.py", "", "/nowhere\0.py"])
def test_paths_of_a_run_from_elsewhere(path: str) -> None:
    fix = StoredFix(FixOutcome("verified"), (FixedFile(path, "a\n", "b\n"),), "/")
    with pytest.raises(ToolError, match="is not the path of a file here"):
        apply_stored(fix, force=True)


def test_what_was_not_verified_is_not_applied(program: Path) -> None:
    fix = stored(program, verdict="rejected", reason="it prints something else")
    with pytest.raises(ToolError, match="verified no fix: it prints something else"):
        apply_stored(fix, force=True)


def test_a_damaged_record(program: Path) -> None:
    home = program.parent.parent / "home"
    run = store_search(home, program)
    for path in (home / run / "artifacts").iterdir():
        path.write_text("[{]")
    fix = stored_fix(read_run(home / run))
    assert fix is not None and not fix.whole
    with pytest.raises(ToolError, match="missing from its run, redacted or damaged"):
        apply_stored(fix, force=True)


def test_a_redacted_run_keeps_the_verdict_and_no_change(program: Path) -> None:
    home = program.parent.parent / "home"
    run = store_search(home, program)
    redacted = redact(read_run(home / run), MemoryArtifacts()).run
    fix = stored_fix(redacted)
    assert fix is not None and fix.outcome.verdict == "verified" and not fix.files
    assert verdict_of(fix, [])[0] == "Verified: graph breaks 1 -> 0."
    with pytest.raises(ToolError, match="missing from its run, redacted or damaged"):
        apply_stored(fix, force=True)


def test_variables_that_belong_to_it(program: Path) -> None:
    environment = {"TORCH_FLAG": "a b"}
    fix = stored(program, files={}, originals={}, environment=environment)
    done = apply_stored(fix, force=False)
    assert done == AppliedFix(remarks=("Start the program with TORCH_FLAG='a b'.",))


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_line_ends_and_marks_stay(program: Path, end: str, mark: str) -> None:
    old, new = OLD.replace("\n", end), NEW.replace("\n", end)
    program.write_bytes((mark + old).encode())
    fix = stored(program, files={str(program): new}, originals={str(program): old})
    assert apply_stored(fix, force=False).written
    assert program.read_bytes() == (mark + new).encode()
    assert apply_stored(fix, force=False).already


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("words", [["patch", "-p1", "--binary"], ["git", "apply"]])
def test_its_diff_is_a_patch(program: Path, words: list[str], end: str, mark: str) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]}")
    old, new = OLD.replace("\n", end), NEW.replace("\n", end)
    program.write_bytes((mark + old).encode())
    fix = stored(program, files={str(program): new}, originals={str(program): old})
    subprocess.run(words, input=fix.diff.encode(), cwd=program.parent, check=True)
    assert program.read_bytes() == (mark + new).encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_no_permission(program: Path) -> None:
    fix = stored(program)
    program.chmod(0o444)
    with pytest.raises(ToolError, match="permission denied"):
        apply_stored(fix, force=True)
    assert program.read_text() == OLD


def test_many_at_once(program: Path) -> None:
    fix = stored(program)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: apply_stored(fix, force=True), range(8)))
    assert sum(bool(each.written) for each in done) == 1
    assert sum(each.already for each in done) == 7
    assert program.read_text() == NEW
    assert os.listdir(program.parent) == ["train.py"]
