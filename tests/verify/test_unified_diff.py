"""Reading and applying a diff: cleanly or not at all, with one sentence that says why."""

from __future__ import annotations

import difflib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilescope.base.errors import ToolError
from compilescope.change.repair.verification.unified_diff import apply_hunks, read_diff

OLD = "".join(f"line {n}\n" for n in range(1, 21))


def _diff(old: str, new: str, context: int = 3) -> bytes:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), "a/x.py", "b/x.py", n=context
    )
    marked = (
        each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in lines
    )
    return "".join(marked).encode()


def _applied(old: str, data: bytes) -> str:
    (patch,) = read_diff(data, "the patch")
    return apply_hunks(old, patch, "x.py")


_TEXT = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "  c\n", "--- d\n", "+++ e\n", "@@ f\n"]), max_size=12
)


@given(_TEXT, _TEXT, st.integers(0, 3), st.booleans())
def test_what_difflib_says_is_what_comes_out(
    old: list[str], new: list[str], context: int, whole: bool
) -> None:
    before, after = "".join(old), "".join(new)
    if not whole:
        before, after = before.rstrip("\n"), after.rstrip("\n")
    if before != after:
        assert _applied(before, _diff(before, after, context)) == after


@pytest.mark.parametrize("context", [0, 1, 3])
def test_several_hunks(context: int) -> None:
    new = OLD.replace("line 3\n", "").replace("line 9\n", "nine\nnine and a half\n")
    assert _applied(OLD, _diff(OLD, new, context)) == new


def test_line_ends_of_windows_are_line_ends() -> None:
    new = OLD.replace("line 9", "nine")
    assert _applied(OLD, _diff(OLD, new).replace(b"\n", b"\r\n")) == new


def test_a_hunk_may_have_moved_to_one_other_place() -> None:
    new = OLD.replace("line 15", "fifteen")
    assert _applied("head\n" + OLD, _diff(OLD, new)) == "head\n" + new
    with pytest.raises(ToolError, match="several places"):
        _applied("head\n" + OLD + OLD, _diff(OLD, new))


def test_a_hunk_that_does_not_fit_is_named() -> None:
    data = _diff(OLD, OLD.replace("line 9", "nine"))
    with pytest.raises(
        ToolError, match=r"Hunk 1 of the patch \(@@ -6,7 \+6,7 @@\) does not apply to x.py: line 8"
    ):
        _applied(OLD.replace("line 8", "other"), data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"hello\nworld\n", "holds no unified diff"),
        (b"\x00\xff\xfe", "holds no unified diff"),
        (_diff(OLD, OLD.replace("line 9", "nine"))[:-30], "is incomplete"),
        (b"--- a/x\n+++ b/x\n@@ -1,z +1 @@\n-a\n", "is damaged"),
        (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n-b\n+c\n", "is damaged|holds no"),
    ],
)
def test_what_is_no_diff(data: bytes, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        for each in read_diff(data, "the patch"):
            apply_hunks("a\nb\n", each, "x")


@given(st.text(string.printable))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_diff(f"--- a/x\n+++ b/x\n{text}".encode(), "the patch")
    except ToolError as error:
        assert error.message.endswith(".")


def test_what_git_says_of_files() -> None:
    data = b"""From 1234 Mon Sep 17 00:00:00 2001
Subject: a change

---
 x.py | 1 +

diff --git a/new.py b/new.py
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+a = 1
diff --git a/old.py b/old.py
deleted file mode 100644
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-a = 1
diff --git a/empty.py b/empty.py
new file mode 100644
diff --git a/one.py b/two.py
similarity index 100%
rename from one.py
rename to two.py
diff --git a/data.bin b/data.bin
index 1..2 100644
Binary files a/data.bin and b/data.bin differ
diff --git "a/s\\303\\244.py" "b/s\\303\\244.py"
--- "a/s\\303\\244.py"
+++ "b/s\\303\\244.py"
@@ -1 +1 @@
-a
+b
"""
    found = [(each.old, each.new, each.is_binary) for each in read_diff(data, "the patch")]
    assert found == [
        (None, "b/new.py", False),
        ("a/old.py", None, False),
        (None, "b/empty.py", False),
        ("a/one.py", "b/two.py", False),
        ("a/data.bin", "b/data.bin", True),
        ("a/sä.py", "b/sä.py", False),
    ]
