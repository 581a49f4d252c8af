"""Which tensor would change nothing where a function computes with an argument if it is given."""

from __future__ import annotations

import pytest

from compilescope.change.fixes.values.neutral import neutral_for
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def _told(*lines: str) -> str:
    body = "\n    ".join(lines)
    module = SourceModule("/program.py", f"import torch\n\n\ndef f(x, m=None):\n    {body}\n")
    function = next(each for each in module.walk() if isinstance(each, cst.FunctionDef))
    return neutral_for(module, function, "m")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x = x.masked_fill(m, 0.0)", "False everywhere"),
        ("x = x.masked_fill(~m, 0.0)", "True everywhere"),
        ("x = x.masked_fill(m[:, None].unsqueeze(1), float('-inf'))", "False everywhere"),
        ("x = x.masked_fill(m[:, None] == 0, 0.0)", "of ones"),
        ("x = x * m", "of ones"),
        ("x *= m.unsqueeze(-1)", "of ones"),
        ("x = x + m", "of -0.0"),
        ("x = x - m", "of zeros"),
        ("x = x / m", "of ones"),
    ],
)
def test_what_changes_nothing(line: str, words: str) -> None:
    assert words in _told("x = x.sin()", "if m is not None:", f"    {line}", "return x + 1")


def test_in_an_expression() -> None:
    assert "of ones" in _told("return (x * m if m is not None else x) + 1")
    assert _told("return x * m if m is not None else x + 1") == ""


@pytest.mark.parametrize(
    "lines",
    [
        ("if m is not None:", "    x = m - x", "return x"),
        ("if m is not None:", "    x = m / x", "return x"),
        ("if m is not None:", "    y = x * m", "else:", "    y = x", "return y"),
        ("if m is not None:", "    x = x * m", "    x = x + m", "return x"),
        ("if m is not None:", "    x = x @ m", "return x"),
        ("if m is not None:", "    return (x * m).sum() / m.sum()", "return x.mean()"),
        ("if m is not None:", "    x = x * m", "return g(x, m)"),
        ("x = x * m", "return x"),
    ],
)
def test_what_the_code_does_not_tell(lines: tuple[str, ...]) -> None:
    assert _told(*lines) == ""
