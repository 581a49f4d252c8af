"""The harness itself is held to programs whose fate is known: it must see what goes wrong."""

from __future__ import annotations

import re
from functools import cache

import pytest

from advice.comparing import difference, steady
from advice.running import Program, WarmProcess
from advice.trying import Trial, Tried
from compilescope.change.fixes.diffs import file_diff
from compilescope.knowledge.findings.remedy import Advice

pytestmark = pytest.mark.torch

PROGRAM = """import torch


class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = 0.0

    def forward(self, x):
        y = x * 2
        print("sum", y.sum())
        self.last = 1.0
        return y


model = Doubled()
compiled = torch.compile(model, backend="eager")
for _ in range(2):
    out = compiled(torch.ones(3))
"""


@cache
def trial_of(warm: WarmProcess, text: str) -> Trial:
    return Trial(warm, Program("program", "own", text))


def outcome(warm: WarmProcess, after: str, before: str = PROGRAM) -> Tried:
    """Of the print's break, as if a fix had offered to make `after` of the program."""
    trial = trial_of(warm, before)
    finding = next(each for each in trial.original.findings if each.kind == "break")
    diff = file_diff(before, after, "program.py")
    first = Advice("made-up", "proposed", diff, "A change.")
    result, words, _ = trial._outcome(finding, first)
    return Tried("program", "own", "break", "", "", "", "", True, first, result, words)


def test_a_change_that_holds(warm: WarmProcess) -> None:
    text = PROGRAM.replace('        print("sum", y.sum())\n', "")
    text = text.replace("(torch.ones(3))\n", '(torch.ones(3))\n    print("sum", out.sum())\n')
    assert outcome(warm, text).result == "held"


@pytest.mark.parametrize(
    ("old", "new", "result", "words"),
    [
        ('print("sum", y.sum())', "print('sum',  y.sum())", "cause stays", "in its place"),
        ('print("sum", y.sum())', "pass", "results differ", "output no longer has the line"),
        ('print("sum", y.sum())', "raise ValueError(1)", "crash", "ValueError"),
        ("        return y\n", "        return y + 1\n", "cause stays", "still"),
    ],
)
def test_a_change_that_does_not(
    warm: WarmProcess, old: str, new: str, result: str, words: str
) -> None:
    seen = outcome(warm, PROGRAM.replace(old, new))
    assert re.match(result, seen.result), seen
    assert re.search(words, seen.words), seen


SILENT = PROGRAM.replace("y.sum())", "end='')").replace('"sum"', '""')


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return y\n", "return y + 1\n", "output was"),
        ("return y\n", "return (y,)\n", "output is gone|output was"),
        ("self.last = 1.0", "self.last = 2.0", "last"),
        ("self.last = 1.0", "self.last = torch.tensor(1.0)", "last"),
        ("model = Doubled()", "model = Doubled().train(False)", "training"),
    ],
)
def test_values_that_are_not_printed_count(
    warm: WarmProcess, old: str, new: str, words: str
) -> None:
    after = SILENT.replace("        print(\"\", end='')\n", "").replace(old, new)
    assert after.count("print") == 0
    seen = outcome(warm, after, SILENT)
    assert seen.result == "results differ", seen
    assert re.search(words, seen.words), seen


MOVED = """import torch


def doubled(x):
    return x * 2


@torch.compile(backend="eager")
def f(x):
    y = doubled(x)
    print(end="")
    return y


for number in range(2):
    f(torch.full((3,), float(number)))
"""


@pytest.mark.parametrize(("given", "result"), [("y", "held"), ("y + 1", "results differ")])
def test_a_function_counts_though_another_is_compiled(
    warm: WarmProcess, given: str, result: str
) -> None:
    line = '@torch.compile(backend="eager")\n'
    after = MOVED.replace(line, "").replace("def doubled", f"{line}def doubled")
    after = after.replace("return y", f"return {given}")
    seen = outcome(warm, after, MOVED)
    assert seen.result == result, seen
    assert ("in its functions" in seen.words) == (result != "held")


def test_a_diff_of_another_file_does_not_apply(warm: WarmProcess) -> None:
    trial = trial_of(warm, PROGRAM)
    finding = trial.original.findings[0]
    diff = "--- a/program.py\n+++ b/program.py\n@@ -1 +1 @@\n-import numpy\n+import scipy\n"
    result, words, _ = trial._outcome(finding, Advice("made-up", "proposed", diff, "A change."))
    assert result == "patch does not apply" and "FAILED" in words


def test_flags_of_one_program_are_not_those_of_the_next(warm: WarmProcess) -> None:
    first = Program("a", "own", "import torch\ntorch._dynamo.config.verbose = True\nimport os\n"
                    "os.environ['A_FLAG'] = '1'\n")  # fmt: skip
    text = "import os, torch\nprint(torch._dynamo.config.verbose, os.environ.get('A_FLAG'))\n"
    second = Program("b", "own", text)
    printed = []
    for program in (second, first, second):
        folder = warm.place()
        program.write(folder)
        printed.append(warm.run(program, folder, "capture").stdout)
    assert printed[0] == printed[2] and b"None" in printed[0]


def test_how_a_program_ends_is_told(warm: WarmProcess) -> None:
    for text, status, error in (
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('no')", 1, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", -11, ""),
    ):
        program = Program("end", "own", text)
        folder = warm.place()
        program.write(folder)
        ran = warm.run(program, folder, "eager")
        assert ran.status == status and ran.error.startswith(error), text


def test_numbers_are_held_up_to_rounding_and_no_further() -> None:
    def values(number: object, *, grad: bool = False) -> dict[str, object]:
        leaf = {"tensor": ["torch.float32", [1], grad], "numbers": [number]}
        return {"calls": [{"region": "f", "gives": {"output": leaf}}], "names": {}}

    assert not difference(values(1.0), values(1.00001))
    assert difference(values(1.0), values(1.01))
    assert difference(values(1.0), values({"number": "nan"}))
    assert difference(values(1.0), values(1.0, grad=True))
    assert not difference(values(1.0), values(2.0), other_numbers=True)
    assert difference(values(1.0), values(2.0, grad=True), other_numbers=True)


def test_what_no_two_runs_agree_on_is_not_held_against_a_change() -> None:
    one = {"calls": [], "names": {"began": {"began": 17}, "n": {"n": 2}}}
    other = {"calls": [], "names": {"began": {"began": 18}, "n": {"n": 2}}}
    assert steady(one, other)["names"] == {"n": {"n": 2}}
