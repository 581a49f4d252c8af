"""Lines of resume functions are those of the source, whatever Dynamo's table of lines says."""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import Any

import pytest

from compilescope.instrument.torchapi.stacks import slip, true_line

pytestmark = pytest.mark.torch

CHAIN = """def f(x, found):
    found("first")
    y = (
        x
        .conjugate()
        .real.hex(
        )
        .upper()
    )
    found(
        "last"
    )
    return y
"""


def _lines(code: CodeType) -> list[tuple[int, int]]:
    """The offset of each instruction, and the line that its table of lines gives."""
    return [
        (each.offset, each.positions.lineno)
        for each in dis.get_instructions(code)
        if each.positions is not None and each.positions.lineno is not None
    ]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no such tables")
def test_the_table_that_dynamo_writes_is_read_right() -> None:
    """The same code, once with the table of Python and once with that of Dynamo."""
    from torch._dynamo.bytecode_transformation import transform_code_object

    names: dict[str, Any] = {}
    exec(compile(CHAIN, "chain.py", "exec"), names)
    code: CodeType = names["f"].__code__
    # Some versions give it with what the transformation returned.
    made: Any = transform_code_object(code, lambda instructions, options: None)
    written: CodeType = made[0] if isinstance(made, tuple) else made
    assert written.co_code == code.co_code
    assert not any(slip(code, offset) for offset, _ in _lines(code))
    lines = _lines(written)
    assert [(offset, line - slip(written, offset)) for offset, line in lines] == _lines(code)


def test_what_is_not_known_is_left_as_it_is() -> None:
    assert true_line("none.py", "torch_dynamo_resume_in_f_at_3", 7, 4, 9) == 7
