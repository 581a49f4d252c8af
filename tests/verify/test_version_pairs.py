"""Another file, a patch or commits as two versions; nothing on disk or in git changes by it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.change.repair.trials.child.overlay import Overlay
from compilescope.change.repair.verification.version_pairs import (
    against_file,
    between_commits,
    patched,
)

MAIN = "from pkg import one\n\nprint(one.value)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    (tmp_path / "pkg/one.py").write_text("value = 1\n")
    return tmp_path


def _patch(folder: Path, text: str, *more: str) -> object:
    return patched(text.encode(), "change.diff", [str(folder), *more])


CHANGE = "--- {a}pkg/one.py\n+++ {b}pkg/one.py\n@@ -1 +1 @@\n-value = 1\n+value = 2\n"


@pytest.mark.parametrize(("a", "b"), [("a/", "b/"), ("", ""), ("i/", "w/"), ("c/", "i/")])
def test_prefixes_of_names(folder: Path, a: str, b: str) -> None:
    pair = _patch(folder, CHANGE.format(a=a, b=b))
    assert pair.after.files == {str(folder / "pkg/one.py"): "value = 2\n"}
    assert pair.before.files == {}


def test_names_from_the_top_of_the_tree(folder: Path) -> None:
    pair = patched(CHANGE.format(a="a/", b="b/").encode(), "x", [str(folder / "pkg"), str(folder)])
    assert list(pair.after.files) == [str(folder / "pkg/one.py")]


@pytest.mark.parametrize("name", ["../out.py", "/etc/passwd.py", "pkg/../../out.py", "link/x.py"])
def test_files_outside_are_refused(folder: Path, name: str, tmp_path_factory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.py").write_text("a\n")
    (folder / "link").symlink_to(outside)
    text = f"--- {name}\n+++ {name}\n@@ -1 +1 @@\n-a\n+b\n"
    with pytest.raises(ToolError, match="outside of"):
        _patch(folder, text)


def test_missing_and_existing_files(folder: Path) -> None:
    with pytest.raises(ToolError, match=r"changes pkg/two.py, which is not in"):
        _patch(folder, CHANGE.format(a="a/", b="b/").replace("one.py", "two.py"))
    new = "--- /dev/null\n+++ b/pkg/one.py\n@@ -0,0 +1 @@\n+a = 1\n"
    with pytest.raises(ToolError, match="which exists already"):
        _patch(folder, new)


def test_new_deleted_renamed_and_other_files(folder: Path) -> None:
    (folder / "notes.md").write_text("a\n")
    text = (
        "diff --git a/pkg/one.py b/pkg/two.py\nrename from pkg/one.py\nrename to pkg/two.py\n"
        "--- /dev/null\n+++ b/pkg/three.py\n@@ -0,0 +1 @@\n+a = 1\n"
        "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-a\n+b\n"
    )
    pair = _patch(folder, text)
    assert {os.path.basename(path) for path in pair.after.files} == {"two.py", "three.py"}
    assert pair.after.absent == {str(folder / "pkg/one.py")}
    assert pair.after.text_of(str(folder / "pkg/one.py")) is None
    assert pair.others == (str(folder / "notes.md"),)
    assert not pair.is_same


def test_the_other_file_brings_the_modules_beside_it(folder: Path) -> None:
    other = folder / "other"
    (other / "pkg").mkdir(parents=True)
    (other / "main.py").write_text(MAIN + "# another\n")
    (other / "pkg/__init__.py").write_text("")
    (other / "pkg/one.py").write_text("from . import two\nvalue = two.value\n")
    (other / "pkg/two.py").write_text("value = 2\n")
    (other / "pkg/unused.py").write_text("value = 3\n")
    pair = against_file(str(folder / "main.py"), other / "main.py")
    names = {os.path.relpath(path, folder) for path in pair.after.files}
    assert names == {"main.py", "pkg/one.py", "pkg/two.py"}


def test_a_file_in_another_encoding_is_compared_as_text(folder: Path) -> None:
    (folder / "main.py").write_bytes("# coding: latin-1\nprint('\xe4')\n".encode("latin-1"))
    (folder / "fixed.py").write_text("print('\xe4')\n")
    pair = against_file(str(folder / "main.py"), folder / "fixed.py")
    assert pair.before.files[str(folder / "main.py")] == "# coding: latin-1\nprint('\xe4')\n"


def test_against_what_is_not_there(folder: Path) -> None:
    with pytest.raises(ToolError, match="There is no file"):
        against_file(str(folder / "main.py"), Path("none.py"))
    with pytest.raises(ToolError, match="is the program itself"):
        against_file(str(folder / "main.py"), Path("main.py"))


def _git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def _hash(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()


@pytest.fixture
def repository(folder: Path) -> Path:
    _git(folder, "init", "-q")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "one")
    (folder / "pkg/one.py").write_text("from pkg.two import value\n")
    (folder / "pkg/two.py").write_text("value = 2\n")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "two")
    (folder / "pkg/two.py").write_text("value = 3\n")
    (folder / "pkg/three.py").write_text("value = 4\n")
    return folder


def test_the_working_tree_against_a_commit(repository: Path) -> None:
    before = _hash(repository)
    pair = between_commits("HEAD~1", str(repository / "pkg"))
    one, two, three = (str(repository / f"pkg/{name}.py") for name in ("one", "two", "three"))
    assert pair.before.files == {one: "value = 1\n"}
    assert pair.before.absent == {two, three}
    assert pair.after.files == {}
    assert _hash(repository) == before


def test_two_commits(repository: Path) -> None:
    for wanted in ("HEAD~1..HEAD", "HEAD~1..", "HEAD~1...HEAD"):
        pair = between_commits(wanted, str(repository))
        two = str(repository / "pkg/two.py")
        assert pair.before.text_of(two) is None
        assert pair.after.text_of(two) == "value = 2\n"
        assert pair.before.text_of(str(repository / "pkg/one.py")) == "value = 1\n"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("nowhere", "knows no commit nowhere"),
        ("--all", "knows no commit"),
        ("HEAD..x", "no commit x"),
    ],
)
def test_commits_that_are_not_there(repository: Path, wanted: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        between_commits(wanted, str(repository))


def test_no_repository(folder: Path) -> None:
    with pytest.raises(ToolError, match="is not in a git repository"):
        between_commits("HEAD", str(folder))


def test_a_submodule_is_refused(repository: Path) -> None:
    _git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "./", "inner")
    with pytest.raises(ToolError, match="inner is a submodule"):
        between_commits("HEAD", str(repository))


def test_modules_that_are_new_or_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the program's imports find them."""
    new, gone = str(folder / "pkg/two.py"), str(folder / "pkg/one.py")
    program = (
        "from compilescope.change.repair.trials.child.overlay import Overlay\n"
        f"Overlay({{{new!r}: 'value = 5'}}, absent=[{gone!r}]).install()\n"
        "import pkg.two\nprint(pkg.two.value, pkg.two.__file__)\n"
        "try:\n    import pkg.one\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [os.sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"5 {new}\nNo module named 'pkg.one'\n"
    assert Overlay({new: ""}).new_module("pkg.two", [str(folder / "pkg")]) == new
