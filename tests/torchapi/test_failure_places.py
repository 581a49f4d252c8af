"""A failure stands at the user's line that was running, not where a resumed function began."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

_LIBRARY = """
import torch

class Box:
    def log(self, name, value):
        check(name)
        return value

@torch._dynamo.assume_constant_result
def check(name):
    raise RuntimeError("log is not allowed here")
"""


def test_a_failure_in_a_library_stands_at_the_users_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    import compilescope
    from compilescope.record.bodies import CompileFailed

    package = tmp_path / "site-packages" / "helper_that_fails"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_LIBRARY)
    monkeypatch.syspath_prepend(str(package.parent))
    library = importlib.import_module("helper_that_fails")

    def step(box, x):  # type: ignore[no-untyped-def]
        out = x * 2
        torch._dynamo.graph_break()
        loss = out.sum()
        again = loss + 1
        box.log("loss", again)
        return again

    torch._dynamo.reset()
    with compilescope.capture() as run, pytest.raises(Exception, match="log is not allowed"):
        torch.compile(step, backend="eager")(library.Box(), torch.ones(3))
    first = step.__code__.co_firstlineno
    ((event, _),) = run.run.of(CompileFailed)
    lines = [(frame.function, frame.line) for frame in event.stack[-2:]]
    assert lines == [("step", first + 5), ("log", 6)]
    (failure,) = run.failures
    assert (failure.function, failure.line) == ("step", first + 5)
    assert failure.source.strip() == 'box.log("loss", again)'
