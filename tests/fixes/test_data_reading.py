"""What the fixes for data read out of a source and out of facts; no torch is needed for that."""

from __future__ import annotations

import libcst as cst
import pytest

from builders import run_of
from compilescope.change.fixes.breaks import (
    masked_reduction,
    math_for_numpy,
    number_for_output,
    print_in_graph,
    tensor_for_number,
    unbind_for_tolist,
)
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.statements.outputs import output_of
from compilescope.change.fixes.subject import Program, Subject
from compilescope.change.fixes.values.graph_values import ValueFact, ValueFacts
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.findings.finding import WordedFinding
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule

FILE = "/home/someone/program.py"
TENSOR = ValueFact("tensor", "torch.Tensor", "float32", (3,))
ONE = ValueFact("tensor", "torch.Tensor", "float32", ())
INT = ValueFact("number", "builtins.int", value="3")


def subject(text: str, spot: str, **facts: ValueFact | tuple[ValueFact, ...]) -> Subject:
    """A finding at the first `spot` of a text, with what names held at its line."""
    line = next(n for n, each in enumerate(text.splitlines(), 1) if spot in each)
    column = text.splitlines()[line - 1].index(spot)
    run = run_of()
    seen = {
        name.replace("__", "."): (f if isinstance(f, tuple) else (f,)) for name, f in facts.items()
    }
    known = ValueFacts({FILE: {line: seen}} if seen else {})
    finding = WordedFinding(
        kind="break",
        rule_id="GB0124",
        fingerprint="f",
        title="",
        message="",
        level="warning",
        file=FILE,
        line=line,
        column=column,
        end_column=column + len(spot),
    )
    return Subject(finding, Program(run, digest(run), FILE, {FILE: text}, known))


def proposed(fix: Fix, found: Subject) -> str:
    (text,) = fix.propose(found).files.values()
    return text


def function(body: str, params: str = "x") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import torch\nimport numpy as np\n\n\ndef f({params}):\n{lines}"


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("print(1)", "print"),
        ("sys.stderr.write('a')", "print"),
        ("log.info('a')", "log"),
        ("self.logger.warning_once('a')", "log"),
        ("logging.error('a')", "log"),
        ("getLogger('a').debug('b')", "log"),
        ("train_writer.add_scalar('a', 1)", "log"),
        ("beat.info('a')", "log"),
        ("warn('a')", "warn"),
        ("bar.update(1)", "progress"),
        ("meter.update(1)", "progress"),
        ("tqdm.write('a')", "progress"),
        ("catalog.info('a')", None),
        ("np.log(2)", None),
        ("cache.update({})", None),
        ("pprint('a')", None),
    ],
)
def test_what_writes_for_a_person(call: str, kind: str | None) -> None:
    text = (
        "import logging, sys\nimport numpy as np\nfrom logging import getLogger\n"
        "from warnings import warn\nfrom tqdm import tqdm\n"
        "beat = getLogger('beat')\nmeter = tqdm(total=2)\n"
        f"def pprint(x): ...\ndef f(self):\n    {call}\n"
    )
    module = SourceModule(FILE, text)
    (whole,) = [n for n in module.walk() if isinstance(n, cst.Expr) and module.line(n) == 10]
    assert output_of(module, whole.value) == kind


def test_an_operator_is_typed_by_what_was_seen() -> None:
    text = function("print(x.mean().item(), self.step, name, mask, n)", "self, x, name, mask, n")
    none = ValueFact("none", "builtins.NoneType")
    found = subject(
        text,
        "print(x.mean().item(), self.step, name, mask, n)",
        x=TENSOR,
        self__step=INT,
        name=ValueFact("text", "builtins.str"),
        mask=(TENSOR, none),
        n=ValueFact("number", "builtins.float"),
    )
    made = proposed(print_in_graph.FIX, found)
    assert (
        "def print_in_f(x: torch.Tensor, self_step: int, name: str, mask: torch.Tensor | None, "
        "n: float) -> None:\n    print(x.mean().item(), self_step, name, mask, n)\n"
    ) in made
    assert "    print_in_f(x, self.step, name, mask, n)\n" in made


@pytest.mark.parametrize("fact", [ValueFact("module", "Net"), (TENSOR, INT)])
def test_no_operator_takes_anything_else(fact: ValueFact) -> None:
    found = subject(function("print(thing)", "thing"), "print(thing)", thing=fact)
    with pytest.raises(Refused, match="not a tensor, number or string"):
        print_in_graph.FIX.propose(found)


def test_two_operators_of_one_function_have_two_names() -> None:
    text = function("print('a', x)\nprint('b', x)\nreturn x")
    first = proposed(print_in_graph.FIX, subject(text, "print('a', x)", x=TENSOR))
    second = proposed(print_in_graph.FIX, subject(text, "print('b', x)", x=TENSOR))
    assert "def print_in_f(" in first and "def print_in_f_2(" in second


def test_a_tensor_of_one_element_loses_its_dimension_like_its_number() -> None:
    text = function("return x * scale.item()", "x, scale")
    kept = proposed(tensor_for_number.FIX, subject(text, "scale.item()", x=TENSOR, scale=ONE))
    assert "x * scale.detach().clone()" in kept
    one = ValueFact("tensor", "torch.Tensor", "float32", (1,))
    kept = proposed(tensor_for_number.FIX, subject(text, "scale.item()", x=TENSOR, scale=one))
    assert "x * scale.detach().reshape(()).clone()" in kept


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("n = x.sum().item()\nreturn x[: n]", "Python number is needed"),
        ("n = x.sum().item()\nreturn torch.zeros(n)", "Python number is needed"),
        ("n = x.sum().item()\nif n > 2:\n    x = x + n\nreturn x", "Python uses the result"),
        ("n = x.sum().item()\nself.n = n\nreturn x", "stored|Python number is needed"),
        ("n = x.sum().item()\nn += 1\nreturn x * n", "several places"),
        ("n = x.sum().item()\nreturn (lambda y: y * n)(x)", "nested function"),
        ("total = 0.0\ntotal += x.sum().item()\nreturn x * total", "Python number is needed"),
        ("n = x.sum().item()\nreturn x * (2 / n)", "zero"),
        ("n = x.sum().item()\nreturn x * n**0.5", "Python number is needed"),
        ("n = (x > 0).any().item()\nreturn x * n", "bool"),
        ("n = int(x.sum().item())\nreturn x * n", "NaN"),
        ("n = x.sum().item()\nreturn math.sqrt(n) * x", "Python number is needed"),
    ],
)
def test_where_a_number_is_needed(body: str, because: str) -> None:
    spot = "(x > 0).any().item()" if "any" in body else "x.sum().item()"
    found = subject(function(body, "self, x"), spot, x=TENSOR)
    with pytest.raises(Refused, match=because):
        tensor_for_number.FIX.propose(found)


def test_several_numbers_of_one_line_of_output() -> None:
    text = function("a = x.max().item()\nb = float(x.min())\nprint(a, b)\nreturn x * b")
    made = proposed(number_for_output.FIX, subject(text, "x.max().item()", x=TENSOR))
    assert "    print(a.item(), b.item())\n" in made
    assert "    a = x.max().detach()\n    b = x.min().detach()\n    print_in_f(a, b)\n" in made


@pytest.mark.parametrize(
    ("facts", "because"),
    [
        ({"mask": ValueFact("tensor", "torch.Tensor", "bool", (3,))}, "whole rows"),
        ({"mask": ValueFact("tensor", "torch.Tensor", "int64", (2,))}, "not a bool mask"),
        ({}, "unknown whether"),
    ],
)
def test_a_mask_must_be_one_truth_for_each_element(
    facts: dict[str, ValueFact], because: str
) -> None:
    rows = ValueFact("tensor", "torch.Tensor", "float32", (3, 2))
    found = subject(function("return x[mask].sum()", "x, mask"), "x[mask]", x=rows, **facts)
    with pytest.raises(Refused, match=because):
        masked_reduction.FIX.propose(found)


def test_two_things_picked_by_one_mask() -> None:
    text = function("return (a[m] - b[m]).abs().mean()", "a, b, m")
    mask = ValueFact("tensor", "torch.Tensor", "bool", (3,))
    found = subject(text, "a[m]", a=TENSOR, b=TENSOR, m=mask)
    assert (
        "return torch.where(m, (torch.where(m, a, 0) - torch.where(m, b, 0)).abs(), 0).sum() "
        "/ m.sum()"
    ) in proposed(masked_reduction.FIX, found)
    half = ValueFact("tensor", "torch.Tensor", "float16", (3,))
    found = subject(text, "a[m]", a=half, b=half, m=mask)
    # As `mean` does below 32 bits: summed in 32, then rounded once.
    assert ".sum(dtype=torch.float32) / m.sum()).to(a.dtype)" in proposed(
        masked_reduction.FIX, found
    )


def test_a_list_of_lists_is_not_unbound() -> None:
    text = function("a, b = x.tolist()\nreturn x * a")
    rows = ValueFact("tensor", "torch.Tensor", "float32", (2, 2))
    with pytest.raises(Refused, match="nested"):
        unbind_for_tolist.FIX.propose(subject(text, "x.tolist()", x=rows))


def test_a_list_whose_sum_is_a_size_holds_whole_numbers() -> None:
    text = function("return np.zeros((2, np.sum(plan[: 2])))", "plan")
    plan = ValueFact("other", "builtins.list")
    found = subject(text, "np.sum(plan[: 2])", plan=plan)
    assert "np.zeros((2, sum(plan[: 2])))" in proposed(math_for_numpy.FIX, found)
    text = function("return np.sum(plan) * 2.0", "plan")
    with pytest.raises(Refused, match="unknown"):
        math_for_numpy.FIX.propose(subject(text, "np.sum(plan)", plan=plan))
