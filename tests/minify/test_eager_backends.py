"""Candidates run with Dynamo alone, in whichever form the program compiles."""

from __future__ import annotations

import pytest

from compilescope.change.minify.source.program_sandbox import is_eager, with_eager_backend


@pytest.mark.parametrize(
    ("program", "eager"),
    [
        ("net.compile()", 'net.compile(backend="eager")'),
        (
            "self.net.compile(mode=m, dynamic=True)",
            'self.net.compile(dynamic=True, backend="eager")',
        ),
        ("Net().eval().compile()", 'Net().eval().compile(backend="eager")'),
        ("torch.compile(f)(x)", 'torch.compile(f, backend="eager")(x)'),
        ("@torch.compile\ndef f(x): pass", '@torch.compile(backend="eager")\ndef f(x): pass'),
    ],
)
def test_every_form_gets_the_eager_backend(program: str, eager: str) -> None:
    assert not is_eager(program)
    assert with_eager_backend(program) == eager and is_eager(eager)


@pytest.mark.parametrize("text", ["re.compile('a')", "p = x.compile()", "print(1)"])
def test_other_compiles_are_left_alone(text: str) -> None:
    assert with_eager_backend(text) == text and is_eager(text)
