"""The form for a bug report: the model, the call and the check, in few lines of plain PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from compilescope.change.minify.graph.record import BackendSource, Setting, Shown  # noqa: E402
from compilescope.change.minify.script.issue import (  # noqa: E402
    IssueForm,
    NoIssueForm,
    graph_issue,
    issue_path,
    source_issue,
    why_not_shown,
    write_issue,
)
from compilescope.change.minify.script.verification import too_late  # noqa: E402
from compilescope.record.written_graph import Input, Op, Ref, TensorKind, WrittenGraph  # noqa: E402

MODULE = """
import torch
import torch.nn.functional as F

SAID = "mychip: no gelu"


def mine(gm, inputs):
    if any(node.target is F.gelu for node in gm.graph.nodes):
        raise RuntimeError(SAID)
    return gm.forward


def wrong(gm, inputs):
    return lambda *args: tuple(each + 1 for each in gm.forward(*args))


def other():
    pass
"""
FAILURE = Shown("failure", ["RuntimeError", "mychip: no gelu", "mine"], "It fails.")
DIFFERENCE = Shown("difference", "values", "It differs.")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def graph(**fields: Any) -> WrittenGraph:
    kind = TensorKind((2, 3), "float32", grad=bool(fields.pop("grad", False)))
    given = Input("x", kind, fill="ones", **fields)
    ops = (Op("y", "function", "torch._C._nn.gelu", (Ref("x"),)),)
    return WrittenGraph((given,), ops, Ref("y"))


def backend(folder: Path, name: str) -> BackendSource:
    (folder / "my_backends.py").write_text(MODULE)
    imports = (f"from my_backends import {name}",)
    return BackendSource(name, name, imports, folders=(str(folder),))


def form(setting: Setting, shown: Shown, made: WrittenGraph | None = None) -> IssueForm:
    return graph_issue(made or graph(), setting, shown, torch_version="2.13.0", saved={})


def run(text: str) -> None:
    # As a file of its own: Dynamo looks at where a frame comes from.
    exec(compile(text, "issue.py", "exec"), {"__name__": "__main__"})


def test_a_crash_is_raised_by_few_lines_that_need_nothing_of_ours(tmp_path: Path) -> None:
    made = form(Setting(backend(tmp_path, "mine")), FAILURE)
    assert made.lines < 40
    assert "compilescope" not in made.text and str(tmp_path) not in made.text
    assert made.text.count("import torch\n") == 1
    assert "SAID = " in made.text and "def other" not in made.text
    with pytest.raises(Exception, match="mychip: no gelu"):
        run(made.text)
    assert made.signs == ("RuntimeError", "mychip: no gelu")


@pytest.mark.parametrize("grad", [False, True])
def test_other_numbers_fail_an_assertion(tmp_path: Path, grad: bool) -> None:
    setting = Setting(backend(tmp_path, "wrong"), backward=grad)
    if grad:
        setting = Setting(BackendSource("'eager'", "eager"), backward=True)
        run(form(setting, DIFFERENCE, graph(grad=True)).text)
        return
    made = form(setting, DIFFERENCE)
    assert made.lines < 40
    with pytest.raises(AssertionError, match="not close"):
        run(made.text)


def test_the_variables_it_needs_are_set_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/secret")
    text = form(Setting(BackendSource("'eager'", "eager")), DIFFERENCE).text
    set_at = text.index("os.environ['TORCHINDUCTOR_MAX_AUTOTUNE'] = '1'")
    assert set_at < text.index("import torch\n") and "/secret" not in text


def test_what_it_cannot_say_is_refused() -> None:
    eager = Setting(BackendSource("'eager'", "eager"))
    with pytest.raises(NoIssueForm, match="too many to write out"):
        kind = TensorKind((2, 3), "float32")
        saved = WrittenGraph((Input("x", kind, fill="saved", saved="x"),), (), Ref("x"))
        form(eager, DIFFERENCE, saved)
    with pytest.raises(NoIssueForm, match="checked by compilescope"):
        form(eager, Shown("violation", [], "It is refused."))
    with pytest.raises(NoIssueForm, match="your modules in /gone"):
        gone = BackendSource("b", "b", ("from nowhere import b",), folders=("/gone",))
        form(Setting(gone), DIFFERENCE)


BREAK = """from __future__ import annotations
import torch


def f(x):
    x.sum().item()


torch.compile(f, backend="eager")(torch.ones(2))
"""
RECOMPILE = """import torch


def f(x):
    return x + 1


for n in (2, 3):
    torch.compile(f, backend="eager", dynamic=False)(torch.ones(n))
"""


@pytest.mark.parametrize(
    ("program", "kind", "said"),
    [(BREAK, "break", "Tensor.item"), (RECOMPILE, "recompile", "Recompiling function f")],
)
def test_of_source_torch_itself_is_the_judge(program: str, kind: str, said: str) -> None:
    torch._dynamo.utils.counters.clear()
    made = source_issue(program, kind, ["It."], (said,), "2.13.0")
    assert made.lines < 25 and "compilescope" not in made.text
    with torch._dynamo.config.patch(suppress_errors=False):
        kept = torch._dynamo.config.error_on_recompile
        try:
            with pytest.raises(Exception, match=said):
                run(made.text)
        finally:
            torch._dynamo.config.error_on_recompile = kept


def test_nothing_is_handed_out_that_does_not_show_it(tmp_path: Path) -> None:
    repro = tmp_path / "repro.py"
    fine = IssueForm("print('fine')\n", ("RuntimeError",))
    made = write_issue(repro, lambda: fine, 100.0)
    assert made.path is None and "did not show the same" in made.words
    assert not issue_path(repro).exists() and list(tmp_path.iterdir()) == []


def test_it_is_written_beside_the_repro_and_over_no_file_of_the_user(tmp_path: Path) -> None:
    repro = tmp_path / "repro.py"
    text = '"""Exit status: 1 while the bug is present."""\nraise RuntimeError("add_3 is wrong")\n'
    shown = IssueForm(text, ("RuntimeError", "add_ is wrong"))
    for _ in range(2):
        assert write_issue(repro, lambda: shown, 100.0).path == tmp_path / "repro_issue.py"
    issue_path(repro).write_text("mine")
    made = write_issue(repro, lambda: shown, 100.0)
    assert made.path is None and "a file of yours" in made.reason
    assert issue_path(repro).read_text() == "mine"


def test_a_signal_is_seen_from_outside(tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text("import os\nos.kill(os.getpid(), 6)\n")
    assert why_not_shown(IssueForm("", (), signal=6), script, 100.0) == ""
    assert "did not end by SIGSEGV" in why_not_shown(IssueForm("", (), signal=11), script, 100.0)


def test_a_form_for_which_no_time_was_left_says_so() -> None:
    assert too_late(0.244247) == "no time was left to verify it"
    assert too_late(61.7) == "it could not be verified within 62 s"
