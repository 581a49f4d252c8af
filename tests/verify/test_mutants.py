"""The mutator and the rewriter with which `benchmarks/judge.py` tests the judge."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from judging.case import (  # noqa: E402
    Finished,
    Judged,
    LeftOut,
    as_line,
    cases_of,
    every_subject,
    group_of,
    read_kept,
    reviewed,
    rows_of,
    stale_reviews,
    wrongly_rejected,
)
from judging.mutants import OPERATORS, draw, mutants  # noqa: E402
from judging.same import REWRITES, rewrites  # noqa: E402


def _in_function(line: str, more: str = "") -> str:
    return f"import torch\n{more}\n\ndef f(self, x, y, mask=None):\n    {line}\n"


def _made(line: str, operator: str) -> set[str]:
    found = mutants(_in_function(line))
    return {each.text.splitlines()[4].strip() for each in found if each.operator == operator}


@pytest.mark.parametrize(
    ("operator", "line", "wanted"),
    [
        ("arithmetic", "return x + y", "return x - y"),
        ("arithmetic", "return x @ y", "return x * y"),
        ("arithmetic", "x -= y", "x += y"),
        ("comparisons", "return x < y", "return x <= y"),
        ("comparisons", "return x is None", "return x is not None"),
        ("logic", "return x and y", "return x or y"),
        ("logic", "return not x", "return x"),
        ("logic", "return ~x & y", "return x & y"),
        ("constants", "return x * 3", "return x * 4"),
        ("constants", "return g(x, True)", "return g(x, False)"),
        ("constants", "return x == 'mean'", "return x == 'means'"),
        ("dims", "return x.sum(-1)", "return x.sum(0)"),
        ("dims", "return torch.cat([x, y], 1)", "return torch.cat([x, y], 0)"),
        ("dims", "return x.sum(0, keepdim=True)", "return x.sum(0, keepdim=False)"),
        ("shapes", "return x.view(2, 3)", "return x.view(3, 2)"),
        ("shapes", "return x.transpose(0, 1)", "return x"),
        ("slices", "return x[1:]", "return x[1 + 1:]"),
        ("slices", "return x[-1]", "return x[0]"),
        ("dtypes", "return x.to(torch.float32)", "return x.to(torch.float64)"),
        ("dtypes", "return x.float()", "return x.double()"),
        ("masks", "return x.masked_fill(mask, 0)", "return x.masked_fill(~mask, 0)"),
        ("masks", "return x.masked_fill(mask, 0)", "return x"),
        ("masks", "return torch.where(mask, x, y)", "return torch.where(mask, y, x)"),
        ("masks", "return x.tril()", "return x.triu()"),
        ("in place", "x.add_(y)", "x.add(y)"),
        ("in place", "x += y", "x = x + y"),
        ("gradients", "return x.detach() + y", "return x + y"),
        ("gradients", "return x.sum()", "return x.sum().detach()"),
        ("checks", "assert x, y", "pass"),
        ("checks", "raise ValueError(x)", "pass"),
        ("state", "self.count += 1", "pass"),
        ("state", "self.count += 1", "self.count += 1; self.count += 1"),
        ("statements", "x = x * 2", "pass"),
        ("statements", "print(x)", "pass"),
        ("arguments", "return torch.sub(x, y)", "return torch.sub(y, x)"),
        ("reductions", "return x.sum()", "return x.mean()"),
        ("functions", "return x.relu()", "return x.gelu()"),
        ("functions", "return torch.softmax(x, -1)", "return torch.sigmoid(x)"),
        ("copies", "return x.clone()", "return x"),
        ("dropout", "return F.dropout(x, 0.5)", "return F.dropout(x, 0.25)"),
        ("returns", "return x, y", "return (y, x)"),
    ],
)
def test_an_operator_makes_what_it_says(operator: str, line: str, wanted: str) -> None:
    assert wanted in _made(line, operator)


def test_a_default_is_another_one() -> None:
    found = mutants("def f(x, scale=0.5):\n    return x * scale\n")
    assert "def f(x, scale=-0.5):" in {
        each.text.splitlines()[0] for each in found if each.operator == "defaults"
    }


def test_only_what_is_in_functions_is_changed() -> None:
    text = 'x = 1 + 2\n\n\n@wrapped(3)\ndef f(x: int = 1) -> "a text":\n    """Some words."""\n'
    assert {each.operator for each in mutants(text)} == {"defaults"}


def test_two_statements_change_places_only_where_that_says_something() -> None:
    alone = mutants("def f(x):\n    a = x\n    b = 2\n    return a, b\n")
    assert not [each for each in alone if each.operator == "statements"]
    bound = mutants("def f(x):\n    x = x + 1\n    y = x * 2\n    return y\n")
    swapped = "def f(x):\n    y = x * 2\n    x = x + 1\n    return y\n"
    assert swapped in {each.text for each in bound}


def test_mutants_of_real_programs_parse_and_are_all_different() -> None:
    seen = set()
    for subject in every_subject()[::20]:
        text = (ROOT / subject).read_text(encoding="utf-8")
        before = ast.dump(ast.parse(text))
        found = mutants(text)
        texts = [each.text for each in found]
        assert len(texts) == len(set(texts))
        assert all(ast.dump(ast.parse(each)) != before for each in texts)
        seen |= {each.operator for each in found}
    assert len(seen) > len(OPERATORS) / 2


def test_equal_seeds_draw_equal_mutants_and_operators_take_turns() -> None:
    text = (ROOT / "tests/zoo/programs/clean_attention.py").read_text(encoding="utf-8")
    found = mutants(text)
    drawn = draw(found, 12, "a seed")
    assert drawn == draw(mutants(text), 12, "a seed")
    assert drawn == draw(found, 30, "a seed")[:12]
    assert drawn != draw(found, 12, "another")
    operators = [each.operator for each in drawn]
    assert len(set(operators)) == min(12, len({each.operator for each in found}))


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("renamed locals", "def f(x):\n    y = x\n    return y\n", "y_kept_here = x"),
        ("temporaries", "def f(x):\n    return x.sin() + 1\n", "return made_first + 1"),
        ("torch functions", "def f(x):\n    return x.sin() + 1\n", "torch.add(x.sin(), 1)"),
        ("methods", "def f(x):\n    return torch.sin(x)\n", "return x.sin()"),
        ("helpers", "def f(x):\n    return x + 1\n", "return same_as_before()"),
        ("turned ifs", "def f(x):\n    return 1 if x else 2\n", "return 2 if not x else 1"),
        ("f-strings", "def f(x, y):\n    print(x, y)\n", 'print(f"{x!s} {y!s}")'),
        ("keywords", "def f(x):\n    return torch.softmax(x, -1)\n", "torch.softmax(x, dim=-1)"),
        ("lists for tuples", "def f(x):\n    a, b = x\n    return a\n", "[a, b] = x"),
        ("asserts", "def f(x):\n    assert x, 'no'\n", "raise AssertionError('no')"),
        ("turned comparisons", "def f(x):\n    return x < 1\n", "return 1 > x"),
    ],
)
def test_a_rewrite_makes_what_it_says(kind: str, text: str, wanted: str) -> None:
    assert any(wanted in each.text for each in rewrites(text) if each.operator == kind)
    assert kind in REWRITES


def test_what_looks_at_its_own_names_is_not_rewritten() -> None:
    assert rewrites("def f(x):\n    y = x\n    return locals()\n") == []
    # Of numbers of Python's, `torch.add` is another function.
    assert not [r for r in rewrites("def f(n):\n    return n + 1\n") if "torch.add" in r.text]


def _judged(**more: object) -> Judged:
    usual = {"key": "k", "subject": "s", "kind": "mutant", "operator": "dims", "line": 1}
    usual |= {"function": "f", "old": "a", "new": "b", "verdict": "changed"}
    return Judged(**{**usual, **more})  # type: ignore[arg-type]


def test_could_not_tell_is_not_caught() -> None:
    told = [
        (_judged(), "caught"),
        (_judged(verdict="unknown"), "unknown"),
        (_judged(verdict="unknown", ran=False), "not run"),
        (_judged(verdict="verified"), "survived"),
        (_judged(verdict="verified", ran=False), "survived"),
        (_judged(verdict="worse"), "survived"),
    ]
    assert [group_of(each) for each, _ in told] == [group for _, group in told]
    row = rows_of([each for each, _ in told])[-1]
    assert row[1:] == (6, 1, 1, 1, 0, 3)
    assert row.rate == 0.25
    same = [_judged(kind="same"), _judged(kind="same", verdict="unknown")]
    assert list(wrongly_rejected(same)) == same[:1]


def test_answers_are_kept_and_a_line_that_was_cut_off_is_asked_again(tmp_path: Path) -> None:
    kept = tmp_path / "judged.jsonl"
    lines = [_judged(), LeftOut("a.py", "why"), Finished("b.py", "8 mutant seed 0")]
    kept.write_text("".join(map(as_line, lines)) + as_line(_judged(key="cut"))[:40])
    found = read_kept(kept)
    assert (found.judged, found.left) == (lines[:1], lines[1:2])
    assert found.finished == {("b.py", "8 mutant seed 0")}
    assert read_kept(tmp_path / "none").judged == []


def test_every_review_is_of_a_mutant_that_there_is() -> None:
    assert stale_reviews() == []
    assert all(row.why for row in reviewed().values())


@pytest.mark.slow
@pytest.mark.torch
def test_mutants_and_rewrites_of_a_program_are_judged(tmp_path: Path) -> None:
    """Some of each, end to end; the second time nothing is left to ask."""
    kept = tmp_path / "judged.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "judge.py"), "--keep", str(kept)]
    command += ["--subjects", "zoo/programs/clean_attention", "--per-subject", "6"]
    command += ["--same-per-subject", "2", "--heavy", "inf"]
    for _ in range(2):
        ended = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert "| all | 6 |" in ended.stdout, ended.stderr
        assert "2 rewrites that are the same: 2 verified" in ended.stdout
    found = read_kept(kept)
    assert len(found.judged) == 8
    assert {each.key for each in found.judged} <= {
        case.key
        for kind in ("mutant", "same")
        for case in cases_of("tests/zoo/programs/clean_attention.py", kind)  # type: ignore[arg-type]
    }
    assert sum(group_of(each) == "caught" for each in found.judged) >= 5
