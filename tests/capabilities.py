"""What a test may expect of this torch: asks the table of capabilities, compares no version."""

from __future__ import annotations

import dis
import platform
from importlib.metadata import version
from types import CodeType

from compilescope.knowledge.registry.capabilities import load_capabilities

PYTHON = ".".join(platform.python_version_tuple()[:2])


def expected(capability: str) -> bool:
    """Has this torch it? By the record, which needs no torch and which a test compares with what is
    detected; where the record doesn't know this torch, what is detected decides."""
    if capability in _BYTECODE:
        return _BYTECODE[capability]()
    record = load_capabilities()
    there = record.of(version("torch"), PYTHON)
    if there is not None and capability in record.seen:
        return capability in there
    if capability.startswith("example/"):
        return True
    from compilescope.instrument.torchapi.capabilities import has

    return has(capability)


def _inlined_comprehensions() -> bool:
    code = compile("[v for v in y]", "", "eval")
    return not any(isinstance(each, CodeType) for each in code.co_consts)


def _forward_tests() -> bool:
    """A loop's test jumps forward, out of the loop, and another instruction goes back."""
    return not any(name.startswith("POP_JUMP_BACKWARD") for name in dis.opmap)


def _assert_at_test() -> bool:
    """The jump of an `assert` is placed at what it tests, not at the statement."""
    code = compile("assert (y > 0).all(), x", "", "exec")
    jumps = [each for each in dis.get_instructions(code) if each.opname.startswith("POP_JUMP")]
    return bool(jumps) and jumps[0].positions is not None and jumps[0].positions.col_offset == 7


_BYTECODE = {
    "bytecode/inlined-comprehensions": _inlined_comprehensions,
    "bytecode/forward-tests": _forward_tests,
    "bytecode/assert-at-test": _assert_at_test,
}
"""How Python compiles what Dynamo then reads: found out in the Python at hand."""
