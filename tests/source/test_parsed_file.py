"""One line of a file, looked at alone or with all the others: the same is found."""

from __future__ import annotations

import ast

import pytest

from compilescope.knowledge.source import spots
from compilescope.knowledge.source.spots import ParsedFile

TEXT = '''
import torch; x = 1

@torch.compile(
    backend="eager",
)
def f(x, *,
      y=(1,
         2)):
    """Words.

def g(): no code
"""
    if x.sum() > 0: return (x
        .abs()
        .max())
    elif y: pass
    else:
        try:
            return f"{x}" + str([
                each for each in y
            ])
        except ValueError as error: raise
    class Inner:
        @property
        def value(self): return lambda: self

match x:
    case [a, b]:
        print(a)
    case _: pass
'''


def test_a_line_alone_and_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ast.parse(TEXT)
    numbers = range(TEXT.count("\n") + 2)
    alone = [ParsedFile(tree).line(number) for number in numbers]
    monkeypatch.setattr(spots, "_MOST_STEPS", -1)
    whole = ParsedFile(tree)
    assert alone == [whole.line(number) for number in numbers]
    assert sum(len(line.nodes) for line in alone) > 50
