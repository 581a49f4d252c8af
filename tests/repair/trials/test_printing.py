"""What two runs printed."""

from __future__ import annotations

import pytest

from compilescope.change.repair.trials.printed_output import (
    compare_output,
    compare_steadiness,
    differs_in_numbers,
    numbers_are_near,
)

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
    before, after = b"gap 1.50\n", b"gap 1.90\n"
    assert compare_output(before, after).verdict == "fail"
    assert compare_output(before, after, others=[b"gap 1.30\n"]).verdict == "pass"
    assert compare_output(before, b"gap 9.90\n", others=[b"gap 1.30\n"]).verdict == "fail"
    assert differs_in_numbers(before, after)
    assert not differs_in_numbers(before, b"gap long\n")


_LOG = """2026-11-19 09:00:{0:02},1{0:02} INFO train: saved to /tmp/tmp{1}x9k/model.pt
[09:00:{0:02}.1{0:02}] epoch 3 loss {2} ({3} ms, {3} steps/s)
epoch 3: {3}s/it, step time: 0.{0}, steps/s={3}, elapsed 0:00:{0:02}
{{"tokens_per_sec": {3}, "pid": {0}77, "delay": "{4} s", "started": 17{0:02}012345.25}}
run {1}-4f2a-{1} took {3} seconds, score_12
"""


def _log(second: int, name: str, loss: str, speed: str, delay: str = "0.25") -> bytes:
    return _LOG.format(second, name, loss, speed, delay).encode()


_RUNS = [_log(11, "ab1cd", "0.5120", "12.5"), _log(14, "q7ewf", "0.5120", "11.75")]


def test_times_speeds_and_made_up_names_do_not_count_where_they_vary() -> None:
    after = _log(19, "zz9aa", "0.5121", "103.125")
    assert compare_output(_RUNS[0], after).verdict == "fail"
    assert compare_output(_RUNS[0], after, others=_RUNS[1:]).verdict == "pass"
    assert compare_steadiness(*_RUNS).verdict == "pass"


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (_log(19, "zz9aa", "0.6120", "103.125"), "loss 0.6120"),
        (_log(19, "zz9aa", "0.5120", "103.125", "0.75"), "0.75 s"),
        (_log(19, "zz9aa", "0.5120", "103.125").replace(b"score_12", b"score_17"), "score_17"),
        (_log(19, "zz9aa", "0.5120", "103.125").replace(b"epoch 3", b"epoch 4"), "epoch 4"),
    ],
)
def test_what_a_program_computes_counts_beside_them(after: bytes, shown: str) -> None:
    """Also a number of seconds that is the same in each run of the original."""
    found = compare_output(_RUNS[0], after, others=_RUNS[1:])
    assert found.verdict == "fail"
    assert shown in after.decode()


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"loss 0.5 steps/s 12.1\n", b"loss 0.7 steps/s 14.5\n"),
        (b"score_1234\n", b"score_1235\n"),
        (b"hits 17\n", b"hits 18\n"),
        (b"lr 0.10 at 10\n", b"lr 0.20 at 10\n"),
        (b"max 0.5 min 0.1\n", b"max 0.7 min 0.1\n"),
    ],
)
def test_a_result_that_varies_is_not_taken_for_a_time(first: bytes, again: bytes) -> None:
    assert compare_steadiness(first, again).verdict == "fail"


def test_what_rounding_may_move_is_little() -> None:
    assert numbers_are_near(b"loss 0.460 of 8", b"loss 0.461 of 8")
    assert not numbers_are_near(b"loss 0.460 of 8", b"loss 5.0 of 8")
    assert not numbers_are_near(b"loss 0.460 of 8", b"loss 0.460 of 9")
    assert not numbers_are_near(b"loss 0.460 of 8", b"loss nan of 8")
