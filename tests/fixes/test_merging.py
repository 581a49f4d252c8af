"""Patches of one text, put together."""

from __future__ import annotations

from compilescope.change.fixes.patch import applied, hunks, merge

BASE = "import torch\n\na = 1\nb = 2\nc = 3\n"


def test_what_was_taken_apart_is_put_together() -> None:
    other = "import torch\nimport math\n\na = 1\nc = 4\nd = 5\n"
    assert applied(BASE, hunks(BASE, other)) == other
    assert hunks(BASE, BASE) == []


def test_patches_of_different_lines_go_together() -> None:
    one, two = BASE.replace("a = 1", "a = 10"), BASE.replace("c = 3", "c = 30\nd = 4")
    files, kept = merge({"f": BASE}, [{"f": one}, {"f": two}])
    assert kept == [0, 1]
    assert files == {"f": "import torch\n\na = 10\nb = 2\nc = 30\nd = 4\n"}


def test_the_later_of_two_for_one_line_waits() -> None:
    one, two = BASE.replace("b = 2", "b = 20"), BASE.replace("b = 2", "b = 21")
    files, kept = merge({"f": BASE}, [{"f": one}, {"f": two}])
    assert kept == [0]
    assert files == {"f": one}


def test_the_same_import_is_added_once() -> None:
    one = BASE.replace("torch\n", "torch\nimport math\n", 1).replace("a = 1", "a = 10")
    two = BASE.replace("torch\n", "torch\nimport math\n", 1).replace("c = 3", "c = 30")
    files, kept = merge({"f": BASE}, [{"f": one}, {"f": two}])
    assert kept == [0, 1]
    assert files["f"].count("import math") == 1
    assert "a = 10" in files["f"] and "c = 30" in files["f"]


def test_two_lines_put_in_one_place_both_stay() -> None:
    one, two = BASE.replace("b = 2", "x = 1\nb = 2"), BASE.replace("b = 2", "y = 1\nb = 2")
    files, kept = merge({"f": BASE}, [{"f": one}, {"f": two}])
    assert kept == [0, 1]
    assert sorted(files["f"].splitlines()[3:5]) == ["x = 1", "y = 1"]


def test_a_patch_of_two_files_is_taken_whole_or_not() -> None:
    one = {"f": BASE.replace("b = 2", "b = 20")}
    two = {"f": BASE.replace("b = 2", "b = 21"), "g": "z = 1\n"}
    files, kept = merge({"f": BASE, "g": "z = 0\n"}, [one, two])
    assert kept == [0]
    assert "g" not in files


def test_a_line_put_at_the_edge_of_a_changed_stretch_is_no_conflict() -> None:
    one, two = BASE.replace("b = 2", "b = 20"), BASE.replace("b = 2", "x = 1\nb = 2")
    files, kept = merge({"f": BASE}, [{"f": one}, {"f": two}])
    assert kept == [0, 1]
    assert files["f"] == BASE.replace("b = 2", "x = 1\nb = 20")
