"""What is kept of a cause, and what may change around it."""

from __future__ import annotations

import pytest

from compilescope.change.minify.source.findings import (
    SourceFinding,
    lasting,
    lasting_guard,
    path_end,
    source_finding,
)
from compilescope.change.minify.source.script import Story, finished_script, tidy


@pytest.mark.parametrize(
    ("explanation", "kept"),
    [
        (
            "Dynamo cannot trace builtin operator `print` with argument types ['str']",
            "Dynamo cannot trace builtin operator `print",
        ),
        (
            "Do not trace the builtin `time.time.` This function is",
            "Do not trace the builtin `time.time",
        ),
        ("Skip calling function `<function helper at 0x7f1c>` since", "Skip calling function"),
        (
            "Operator `aten._unique2.default`'s shape depends",
            "Operator `aten._unique2.default`'s shape depends",
        ),
        ("Could not extract u0 (unhinted: u0)\nmore", "Could not extract"),
        ("", ""),
    ],
)
def test_the_reason_up_to_what_depends_on_the_program(explanation: str, kept: str) -> None:
    assert lasting(explanation) == kept


@pytest.mark.parametrize(
    ("subject", "kept"),
    [
        ("x.size()[0]", "x.size()[N]"),
        ("self.encoder.x.stride()[11]", "x.stride()[N]"),
        ("self.encoder.layers[3].scale", "scale"),
        ("len(self.seen)", "len(seen)"),
        ("G['FLAG']", "FLAG"),
        ("type(xs)", "type(xs)"),
        ("grad_mode", "grad_mode"),
        ("int(x.sum())", "int(x.sum())"),
    ],
)
def test_the_end_of_the_path_to_a_value(subject: str, kept: str) -> None:
    assert path_end(subject) == kept


def test_what_torch_says_of_a_guard_without_its_values() -> None:
    said = "0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4"
    assert lasting_guard(said) == "tensor 'x' size mismatch at index"
    assert lasting_guard("0/1: n == 3  # return x * n  # a.py:3 in f") == "n =="


def _cause(**given: str) -> SourceFinding:
    words = {"what": "Some break", "file": "a.py", "function": "f", "source": "", "title": "f: x"}
    return source_finding(**{"kind": "break", "line": 3, **words, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("guarded", [False, True])
def test_a_script_is_valid_and_keeps_clear_of_the_programs_names(guarded: bool) -> None:
    text = 'from __future__ import annotations\nsaid = """a\nb"""\ndef f():\n    said\nf(shown)\n'
    cause = _cause(reason='Say "`x`', gb_id="GB1")
    script = finished_script(text, cause, Story("a.py:3, in f", "2", 9), guarded=guarded)
    compile(script, "repro.py", "exec")
    assert script.startswith('"""Graph break: Some break (GB1).')
    assert "said_ = []" in script and "shown_ = any(" in script
    assert script.index("__future__") < script.index("import logging")


def test_a_recompile_listens_to_its_guard() -> None:
    cause = _cause(kind="recompile", guard="n == 3", logged="0/0: n == 3")
    script = finished_script("import torch\nf()\n", cause, Story("a", "2", 9), guarded=False)
    assert '"Recompiling function", "n =="' in script and "recompiles=True" in script


def test_hostile_words_stay_words() -> None:
    cause = _cause(what='"""\nimport os\n"""', reason="\\N{x} {acts} %s")
    script = finished_script("f()\n", cause, Story("a", "2", 9), guarded=False)
    compile(script, "repro.py", "exec")
    assert "\nimport os" not in script.replace("'''", "")


def test_tidy_lays_out() -> None:
    assert tidy("import a\nx=1\ndef f(): return 1\nf( )") == (
        "import a\n\nx = 1\n\n\ndef f():\n    return 1\n\n\nf()\n"
    )
