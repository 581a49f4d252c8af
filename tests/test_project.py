"""The project's settings: found from below, checked, and never silently passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.base.project import Project, read_project


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".git").mkdir(exist_ok=True)
    file = folder / "pyproject.toml"
    file.write_text(text)
    return file


def test_all_keys(tmp_path: Path) -> None:
    file = project(
        tmp_path,
        """
        [tool.compilescope]
        max-breaks = 1
        max_recompiles = 2
        max-graphs = 3
        max_eager = 4
        max-failures = 5
        min-coverage = 95
        own = true
        baseline = "ci/baseline.json"
        """,
    )
    assert read_project(tmp_path) == Project(
        file=file,
        max_breaks=1,
        max_recompiles=2,
        max_graphs=3,
        max_eager=4,
        max_failures=5,
        min_coverage=95.0,
        own=True,
        baseline=tmp_path / "ci" / "baseline.json",
    )


def test_the_nearest_table_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = project(tmp_path, "[tool.compilescope]\nmax-breaks = 1\n")
    inner = tmp_path / "package" / "src"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert read_project() == Project(file=outer, max_breaks=1)
    nearer = tmp_path / "package" / "pyproject.toml"
    nearer.write_text("[project]\nname = 'x'\n")
    assert read_project().file == outer, "a file without the table says nothing"
    nearer.write_text("[tool.compilescope]\n")
    assert read_project() == Project(file=nearer)


def test_another_project_above_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.compilescope]\nmax-breaks = 1\n")
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    assert read_project(tmp_path / "checkout") == Project()


def test_no_file_at_all(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert read_project(tmp_path) == Project()
    (tmp_path / "pyproject.toml").mkdir()
    assert read_project(tmp_path) == Project()


@pytest.mark.parametrize(
    ("line", "words", "hint"),
    [
        ("max-break = 1", "unknown key, 'max-break'", "Did you mean max-breaks?"),
        ("max_recompile = 1", "unknown key, 'max_recompile'", "Did you mean max-recompiles?"),
        ("coverage = 1", "unknown key, 'coverage'", "Did you mean min-coverage?"),
        ("zzz = 1", "unknown key, 'zzz'", "The keys are: max-breaks, "),
        ("max-breaks = '1'", "max-breaks in [tool.compilescope]", ""),
        ("max-breaks = -1", "is -1, not a whole number of at least 0", ""),
        ("max-breaks = 1.5", "is 1.5, not a whole number", ""),
        ("max-breaks = true", "is True, not a whole number", ""),
        ("min-coverage = 101", "is 101, not a number from 0 to 100", ""),
        ("min-coverage = nan", "is nan, not a number", ""),
        ("min-coverage = 1" + "0" * 400, "not a number from 0 to 100", ""),
        ("min-coverage = 0x" + "f" * 5000, "is a number with too many digits, not a number", ""),
        ("max-breaks = 0x" + "f" * 5000, "is a number with too many digits, not a whole", ""),
        ("max-slowdown = 0x" + "f" * 300, "not a number above 0", ""),
        ("max-slowdown = inf", "is inf, not a number above 0", ""),
        ("x" * 5000 + " = 1", "unknown key, 'xxx", "The keys are: max-breaks, "),
        ("min-coverage = [[1]]", "is [[1]], not a number", ""),
        ("own = 1", "is 1, not true or false", ""),
        ("baseline = ''", "is '', not a file name", ""),
        ("baseline = false", "is False, not a file name", ""),
        ("max-breaks = 1\nmax_breaks = 2", "has max_breaks twice", ""),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, line: str, words: str, hint: str) -> None:
    file = project(tmp_path, f"[tool.compilescope]\n{line}\n")
    with pytest.raises(ToolError) as caught:
        read_project(tmp_path)
    assert words in caught.value.message and str(file) in caught.value.message
    assert caught.value.hint.startswith(hint)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.compilescope\n", "is not valid TOML"),
        ("a = 1\n[tool.compilescope]\nmax-breaks =\n", "line 3"),
        ("tool = 3\n[x]\n", ""),
        ("[tool]\ncompilescope = 3\n", "tool.compilescope in"),
        ("a = " + "[" * 50_000, "is not valid TOML"),
        ("a = " + "9" * 5000, "is not valid TOML: a number has too many digits"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, words: str) -> None:
    project(tmp_path, text)
    if not words:
        assert read_project(tmp_path) == Project()
        return
    with pytest.raises(ToolError) as caught:
        read_project(tmp_path)
    assert words in caught.value.message and "\n" not in caught.value.message


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    project(tmp_path, "").write_bytes(b"\xff\xfe")
    with pytest.raises(ToolError, match="is not UTF-8"):
        read_project(tmp_path)
