"""What two runs printed."""

from __future__ import annotations

import pytest

from compilescope.repair.trials.printed_output import compare_output, differs_in_numbers

DROPS, MOVES = frozenset({"drops-output"}), frozenset({"moves-output"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"a\nb\n", b"a\nb\n"),
        (b"loss 0.12345\n", b"loss 0.12346\n"),
        (b"tensor([0.1411, 2.0000])\n", b"tensor([0.1412, 2.0000])\n"),
        (b"nan inf\n", b"nan inf\n"),
        (b"tensor(1., grad_fn=<MulBackward0>)\n", b"tensor(1., grad_fn=<CompiledFunction>)\n"),
        (b"<object at 0x7f00aa12>\n", b"<object at 0x7f00bb12>\n"),
        (b"x = 1.5e-3\n", b"x = 1.4e-3\n"),
    ],
)
def test_the_same(before: bytes, after: bytes) -> None:
    assert compare_output(before, after).verdict == "pass"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (b"a\n", b"b\n", "line 1 of the output was 'a' and is now 'b'"),
        (b"a\nb\n", b"a\n", "no longer has the line 'b'"),
        (b"a\n", b"a\nb\n", "extra line, 'b'"),
        (b"loss 0.12345\n", b"loss 0.13345\n", "line 1"),
        (b"count 3\n", b"count 4\n", "line 1"),
        (b"nan\n", b"1.0\n", "line 1"),
        (b"tensor(1., grad_fn=<MulBackward0>)\n", b"tensor(1.)\n", "line 1"),
    ],
)
def test_not_the_same(before: bytes, after: bytes, words: str) -> None:
    found = compare_output(before, after)
    assert found.verdict == "fail"
    assert words in found.words


def test_lines_may_be_dropped_only_where_that_is_stated() -> None:
    before, after = b"a\nprogress 1\nb\n", b"a\nb\n"
    assert compare_output(before, after).verdict == "fail"
    assert compare_output(before, after, DROPS).verdict == "pass"
    assert compare_output(before, b"b\na\n", DROPS).verdict == "fail"
    assert compare_output(before, b"a\nnew\nb\n", DROPS).verdict == "fail"
    assert compare_output(b"a: 1\n", b"1\n", DROPS).verdict == "pass"


def test_lines_may_be_moved_only_where_that_is_stated() -> None:
    before, after = b"a\nb\n", b"b\na\n"
    assert compare_output(before, after).verdict == "fail"
    assert compare_output(before, after, MOVES).verdict == "pass"
    assert compare_output(before, b"b\n", MOVES).verdict == "fail"
    assert compare_output(before, b"b\n", MOVES | DROPS).verdict == "pass"
    assert compare_output(before, b"b\nc\n", MOVES | DROPS).verdict == "fail"


def test_numbers_may_move_as_far_as_the_original_moves_them() -> None:
    before, after = b"took 1.50 s\n", b"took 1.90 s\n"
    assert compare_output(before, after).verdict == "fail"
    assert compare_output(before, after, others=[b"took 1.30 s\n"]).verdict == "pass"
    assert compare_output(before, b"took 9.90 s\n", others=[b"took 1.30 s\n"]).verdict == "fail"
    assert differs_in_numbers(before, after)
    assert not differs_in_numbers(before, b"took long\n")
