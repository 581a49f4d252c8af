"""Every example breaks with exactly its id at exactly its line, and its fixed form does not."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from capabilities import expected
from compilescope.apps.cli.commands.registry.examples import examples as command
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry import cases
from compilescope.knowledge.registry.cases import (
    EXAMPLES,
    MARK,
    load_examples,
    load_unreachable,
    read_example,
    read_unreachable,
)
from compilescope.knowledge.registry.history import load_history
from compilescope.knowledge.registry.table import load_registry
from registry_upkeep import main as upkeep

if TYPE_CHECKING:
    from upkeep.example_runs import ExampleRun

KNOWN = load_examples()
# All of them take most of a minute: by default, every tenth.
SAMPLE = sorted(KNOWN)[::10]
EACH = [pytest.param(i, marks=() if i in SAMPLE else pytest.mark.slow) for i in sorted(KNOWN)]

GOOD = '''"""It breaks."""
import torch

LIMIT = 3


def f(x):
    torch._dynamo.graph_break()  # breaks here
    return x + LIMIT


def help_of_fixed(x):
    return x


def fixed(x):
    return help_of_fixed(x) + LIMIT


def inputs():
    return (torch.ones(3),)
'''


@functools.cache
def ran(gb_id: str) -> ExampleRun:
    from upkeep.example_runs import run_example

    with pytest.MonkeyPatch.context() as patch:
        # What the tool prints of a run within a test names the test, or pytest's own command.
        patch.setattr(sys, "argv", ["compilescope", "registry", "examples"])
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        return run_example(KNOWN[gb_id])


@pytest.mark.torch
@pytest.mark.parametrize("gb_id", EACH)
def test_it_is_as_it_claims(gb_id: str) -> None:
    assert (ran(gb_id).problems == ()) == expected(f"example/{gb_id}"), ran(gb_id).problems


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("gb_id", sorted(KNOWN))
def test_its_output_is_what_the_tool_prints(gb_id: str) -> None:
    """`tools/registry_upkeep.py examples --write` writes it anew."""
    assert KNOWN[gb_id].output == ran(gb_id).output


@pytest.mark.torch
@pytest.mark.slow
def test_a_hundred_fixed_forms_give_what_eager_gives() -> None:
    assert sum(ran(gb_id).compared for gb_id in KNOWN) >= 100


def test_there_are_many() -> None:
    assert len(KNOWN) >= 150
    assert sum(example.has_fixed for example in KNOWN.values()) >= 100
    assert len(KNOWN) == len(list(EXAMPLES.glob("*.py")))


def test_each_has_its_output_and_no_output_is_left_over() -> None:
    written = {path.stem for path in (EXAMPLES / "outputs").iterdir()}
    assert written == {example.path.stem for example in KNOWN.values()}


def test_nothing_in_an_output_is_of_one_machine() -> None:
    for example in KNOWN.values():
        assert "/tmp" not in (example.output or "") and "compilescope-example" not in (
            example.output or ""
        ), example.gb_id


def test_each_marks_one_line_of_what_breaks() -> None:
    for example in KNOWN.values():
        lines = example.source.splitlines()
        assert lines[example.break_line - 1].endswith(MARK), example.gb_id
        assert example.source.count(MARK) == 1, example.gb_id
        assert MARK in example.broken, example.gb_id
        assert MARK not in example.fixed, example.gb_id
        assert example.description.endswith("."), example.gb_id


@pytest.mark.torch
def test_the_tables_know_every_id() -> None:
    """That of some torch: one may lack ids that came later, or went."""
    known = set(load_history().titles)
    assert set(KNOWN) <= known
    assert set(load_unreachable()) <= known


def test_what_is_out_of_reach_has_no_example() -> None:
    unreachable = load_unreachable()
    assert not set(unreachable) & set(KNOWN)
    assert {entry.kind for entry in unreachable.values()} == {
        "internal",
        "hardware",
        "version",
        "process",
    }
    assert all(entry.reason.endswith(".") for entry in unreachable.values())


def written(folder: Path, text: str, name: str = "gb0025.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_and_not_run(tmp_path: Path) -> None:
    example = read_example(written(tmp_path, GOOD.replace("import torch", "import torch\n1 / 0")))
    assert example.gb_id == "GB0025"
    assert example.description == "It breaks."
    assert (example.backend, example.fullgraph, example.config) == ("eager", False, {})
    assert example.output is None


def test_the_parts_hold_what_they_need(tmp_path: Path) -> None:
    example = read_example(written(tmp_path, GOOD))
    assert example.break_line == 8
    assert example.broken.startswith("import torch\n\nLIMIT = 3\n")
    assert "def f(x)" in example.broken and "fixed" not in example.broken
    assert example.fixed.startswith("def help_of_fixed(x)")
    assert "def fixed(x)" in example.fixed and "import" not in example.fixed


def test_a_fixed_form_may_be_missing_or_a_config(tmp_path: Path) -> None:
    start, end = GOOD.index("def help_of_fixed"), GOOD.index("def inputs")
    without = GOOD[:start] + GOOD[end:]
    assert not read_example(written(tmp_path, without)).has_fixed
    configured = without + 'FIXED_CONFIG = {"cache_size_limit": 3}\n'
    example = read_example(written(tmp_path, configured))
    assert example.has_fixed and example.fixed == ""
    assert example.fixed_config == {"cache_size_limit": 3}


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (GOOD.replace('"""It breaks."""', ""), "gb0025.py", "no docstring"),
        (GOOD.replace(MARK, ""), "gb0025.py", "0 lines"),
        (GOOD.replace("LIMIT\n", f"LIMIT  {MARK}\n", 1), "gb0025.py", "2 lines"),
        (GOOD.replace("def f(", "def g("), "gb0025.py", "neither f nor run"),
        (GOOD.replace("def inputs(", "def given("), "gb0025.py", r"no inputs\(\)"),
        (GOOD + "CONFIG = {'a': object()}\n", "gb0025.py", "not a plain value"),
        (GOOD + "def (", "gb0025.py", "could not be read"),
        (GOOD, "gb25.py", "not named after an id"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, text: str, name: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        read_example(written(tmp_path, text, name))


@pytest.mark.parametrize(
    "text",
    ['[GB1]\nkind = "internal"\nreason = "x"', '[GB0001]\nkind = "odd"\nreason = "x"', "[GB0001"],
)
def test_a_bad_list_of_unreachable_ids_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(ToolError, match="is not valid"):
        read_unreachable(written(tmp_path, text, "unreachable.toml"))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "    torch._dynamo.graph_break()  # breaks here",
            "    y = 1  # breaks here",
            "no graph break",
        ),
        (
            "graph_break()  # breaks here",
            "skip_frame()  # breaks here",
            "GB0025 was not reported at line 8",
        ),
        (
            "LIMIT\n\n\ndef help",
            f"LIMIT  {MARK}\n\n\ndef help",
            "GB0025 was not reported at line 9",
        ),
        ("    return help_of_fixed(x)", "    return x", ""),
        ("    return help_of_fixed(x)", "    return 2 * x", "result differs"),
        (
            "    return help_of_fixed(x)",
            "    return x.sum().item() + x",
            "fixed form has GB0124 at line",
        ),
        ("    return help_of_fixed(x)", "    return x @ torch.ones(2)", "fixed form raised"),
    ],
)
def test_a_wrong_claim_is_seen(tmp_path: Path, old: str, new: str, words: str) -> None:
    from upkeep.example_runs import run_example

    text = GOOD.replace(f"  {MARK}", "") if MARK in new and MARK not in old else GOOD
    assert old in text
    result = run_example(read_example(written(tmp_path, text.replace(old, new))))
    if words:
        assert any(words in problem for problem in result.problems), result.problems
    else:
        assert result.verified and result.compared


@pytest.mark.torch
def test_the_command_lists_shows_and_tells_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    command.main([], standalone_mode=False)
    listed = capsys.readouterr().out
    here = {entry.gb_id for entry in load_registry()}
    assert f"{len(here & set(KNOWN))} of {len(here)} IDs have one" in listed
    assert "Can't be triggered here" in listed and "No example yet" in listed
    command.main(["gb124", "GB0044"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert KNOWN["GB0124"].source in shown
    assert "# Can't be triggered here (internal)" in shown
    command.main(["124", "--json"], standalone_mode=False)
    (entry,) = json.loads(capsys.readouterr().out)["examples"]
    assert (entry["state"], entry["has_fixed"]) == ("example", True)
    with pytest.raises(ToolError, match="no GB99999"):
        command.main(["GB99999"], standalone_mode=False)


@pytest.mark.torch
def test_upkeep_runs_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, GOOD)
    wrong = GOOD.replace("graph_break", "skip_frame")
    written(tmp_path, wrong, "gb0124.py")
    monkeypatch.setattr(cases, "EXAMPLES", tmp_path)
    monkeypatch.setattr(cases, "load_examples", lambda: cases.read_examples(tmp_path))
    assert upkeep(["examples", "25", "--write"]) == 0
    assert "1 of 1 examples behave as described" in capsys.readouterr().out
    output = (tmp_path / "outputs" / "gb0025.txt").read_text(encoding="utf-8")
    assert "gb0025.py:8 in f" in output and str(tmp_path) not in output
    assert upkeep(["examples", "--write"]) == 1
    printed = capsys.readouterr().out
    assert "GB0124  " in printed and "GB0025" not in printed and "1 of 2 examples" in printed
    assert not (tmp_path / "outputs" / "gb0124.txt").exists()
    assert upkeep(["examples", "GB0044"]) == 2
    assert "no example for GB0044" in capsys.readouterr().err
