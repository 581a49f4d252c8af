"""Versions and what differs between them."""

from __future__ import annotations

from pathlib import Path

from compilescope.change.fixes.patch import Patch
from compilescope.change.repair.trials.version import Version, changes_between

OLD = """def f(x):
    y = x + 1
    print(y)
    return y
"""
NEW = """import torch
def f(x):
    y = x + 1
    if not torch.compiler.is_compiling():
        print(y)
    return y * 1
"""


def test_a_patch_lies_on_top(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(OLD)
    version = Version().with_patch(Patch({str(file): NEW}, environment={"A": "1"}))
    again = version.with_patch(Patch({str(tmp_path / "b.py"): ""}, environment={"B": "2"}))
    assert again.files == {str(file): NEW, str(tmp_path / "b.py"): ""}
    assert again.environment == {"A": "1", "B": "2"}
    assert Version().text_of(str(file)) == OLD
    assert again.text_of(str(file)) == NEW
    assert again.text_of(str(tmp_path / "none.py")) is None
    assert file.read_text() == OLD


def test_lines_are_followed_from_one_version_to_the_next(tmp_path: Path) -> None:
    file = str(tmp_path / "a.py")
    changes = changes_between(Version({file: OLD}), Version({file: NEW}))
    assert changes.files[file].added == {1, 4, 6}
    assert changes.files[file].removed == {4}
    assert changes.new_line(file, 3) == 5
    assert changes.old_line(file, 5) == 3
    assert changes.is_wrapped(file, 3)
    assert not changes.is_wrapped(file, 2)
    assert changes.new_line("/elsewhere.py", 7) == 7


def test_lines_that_a_patch_names_are_new(tmp_path: Path) -> None:
    file = str(tmp_path / "a.py")
    changes = changes_between(Version({file: OLD}), Version({file: NEW}), {file: [3]})
    assert changes.is_new(file, 3)
    assert changes.new_line(file, 2) is None


def test_equal_texts_are_no_change(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(OLD)
    assert not changes_between(Version(), Version({str(file): OLD})).files
