"""What torch's errors come down to. The texts are those that torch 2.13 wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilescope.record.error_text import (
    graph_break_link,
    innermost_cause,
    one_line,
    user_place,
)

LINK = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb4315.html"
CALL = "call_function <built-in function add>(*(FakeTensor(..., size=(5,)), 4), **{})"
QUOTED = (
    "RuntimeError('The size of tensor a (5) must match the size of tensor b (4) at "
    "non-singleton dimension 0)')"
)
FAKE_TENSORS = f"""RuntimeError when making fake tensor call
  Explanation: Dynamo failed to run FX node with fake tensors: {CALL}: got {QUOTED}
  Hint: Your code may result in an error when running in eager.

  Developer debug context:

 For more details about this graph break, please visit: {LINK}

from user code:
   File "/home/ada/train.py", line 7, in f
    return g(z, y)
           ^^^^^^^
  File "/venv/lib/python3.11/site-packages/torch/_library/custom_ops.py", line 863, in __call__
    return self._opoverload(*args, **kwargs)

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""
SIZES = (
    "RuntimeError: The size of tensor a (5) must match the size of tensor b (4) at "
    "non-singleton dimension 0)"
)
OTHER_PROCESS = """

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 87, in _wrap
    fn(i, *args)
  File "/home/ada/train.py", line 3, in work
    raise ValueError("child is ill")
ValueError: child is ill

"""
COMPILER = """CppCompileError: C++ compile error

Command:
g++ /tmp/x.cpp -o /tmp/x.so

Output:
/tmp/x.cpp: In function 'void kernel()':
/tmp/x.cpp:3:5: error: 'foo' was not declared in this scope
    3 |     foo();
"""


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (FAKE_TENSORS, SIZES),
        (
            "backend='be' raised:\nValueError: no such op\n\nSet TORCHDYNAMO",
            "ValueError: no such op",
        ),
        (
            "LoweringException: NotImplementedError: not lowered\nat all\n  target: my.op2.default",
            "NotImplementedError: not lowered",
        ),
        (OTHER_PROCESS, "ValueError: child is ill"),
        (
            "Observed exception\n  Explanation: Dynamo found no handler.\n\n"
            "  Developer debug context: raised exception AttributeError(\"no 'x'\")\n",
            "AttributeError: no 'x'",
        ),
        (
            "Observed exception\n\n  Developer debug context: raised exception KeyError(2)\n",
            "KeyError: 2",
        ),
        (
            COMPILER,
            "CppCompileError: C++ compile error: "
            "/tmp/x.cpp:3:5: error: 'foo' was not declared in this scope",
        ),
        ("Data-dependent branching\n  Explanation: Detected branching.", ""),
        ("no such file", ""),
        ("", ""),
    ],
)
def test_the_innermost_cause(message: str, cause: str) -> None:
    assert innermost_cause(message) == cause


@pytest.mark.parametrize(
    ("error", "message", "line"),
    [
        ("ValueError", "rank one is\nnot well", "ValueError: rank one is not well"),
        ("ValueError", "first\n" + "word " * 80, "ValueError: first"),
        ("KeyboardInterrupt", "", "KeyboardInterrupt"),
        ("TorchRuntimeError", FAKE_TENSORS, f"TorchRuntimeError: {SIZES}"),
        ("ValueError", "Traceback (most recent call last):\nValueError: x", "ValueError: x"),
        ("ChildFailedError", f"\n{'=' * 60}\nm.py FAILED\n{'-' * 60}\n" + "x " * 90, None),
    ],
)
def test_one_line(error: str, message: str, line: str | None) -> None:
    assert one_line(error, message) == (line or "ChildFailedError: m.py FAILED")


def test_the_link_and_the_place() -> None:
    assert graph_break_link(FAKE_TENSORS) == (LINK, "GB4315")
    assert graph_break_link("nothing") == ("", None)
    assert user_place(FAKE_TENSORS) == ("/home/ada/train.py", 7)
    assert user_place("nothing") is None


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert "\n" not in one_line("E", text)
    assert "\n" not in innermost_cause(text)
    user_place(text)
