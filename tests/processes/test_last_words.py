"""What a process said last: the error that ended it, whatever is printed after it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compilescope.base.processes.outcome import last_words

_UNCLEAN = """
class Held:
    def __del__(self):
        raise AttributeError("too late")
held = Held()
"""
_ADVICE = """
class Unsupported(Exception):
    pass
raise Unsupported("Data-dependent branching\\n\\nSet TORCHDYNAMO_VERBOSE=1 for more")
"""
_CHAINED = """
try:
    1 / 0
except ZeroDivisionError as error:
    raise ValueError("no size") from error
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (_UNCLEAN + "raise ValueError('the cause')", "ValueError: the cause"),
        (_ADVICE, "Unsupported: Data-dependent branching"),
        (_CHAINED, "ValueError: no size"),
        ("import sys; print('a\\n\\nlast one\\n', file=sys.stderr)", "last one"),
        ("", ""),
    ],
)
def test_the_error_that_ended_it(program: str, said: str) -> None:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    found = last_words(ended.stderr)
    assert found.removeprefix("__main__.") == said
