"""`make release` names everything that a version lacks, in a repository of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATRIX = ("2.11.0", "2.13.0")


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def checked(folder: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "release.py", "--check", *MATRIX],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    base = tmp_path / "src" / "compilescope" / "base"
    base.mkdir(parents=True)
    (base / "version.py").write_text('VERSION = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2026-11-17)\n\n## 1.1.0\n")
    (tmp_path / "constraints.txt").write_text("torch==2.13.0\n")
    (tmp_path / ".gitignore").write_text(".venv*\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "a version")
    for name in (".venv", ".venv-2.11.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".tested").write_text(git(tmp_path, "rev-parse", "HEAD"))
    return tmp_path


def test_a_version_that_is_ready(repository: Path) -> None:
    assert checked(repository) == (0, ["1.2.0 can be built."])


def test_everything_that_is_missing_is_named(repository: Path) -> None:
    git(repository, "tag", "v1.2.0")
    (repository / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (unreleased)\n")
    (repository / ".venv-2.11.0" / ".tested").unlink()
    status, said = checked(repository)
    assert status == 1
    assert said == [
        "The tree has changes that are not committed.",
        "v1.2.0 is tagged already: raise VERSION in src/compilescope/base/version.py.",
        "CHANGELOG.md begins with '1.2.0 (unreleased)' instead of '1.2.0 (YEAR-MONTH-DAY)'.",
        "The tests did not pass at this commit with torch 2.11.0: make test TORCH=2.11.0",
    ]


def test_tests_of_an_earlier_commit_do_not_count(repository: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "one more")
    status, said = checked(repository)
    assert status == 1 and [line.rpartition(": ")[2] for line in said] == [
        "make test TORCH=2.11.0",
        "make test",
    ]
