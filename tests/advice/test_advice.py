"""Every offered diff is applied and run: the cause is gone, the results are the same, nothing
crashes. `benchmarks/advice.py` counts the same trials.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import pytest

from advice.corpora import CORPORA
from advice.running import Program, WarmProcess
from advice.shortfalls import SHORTFALLS
from advice.trying import Trial, Tried

pytestmark = pytest.mark.torch

QUICK: dict[str, tuple[str, ...]] = {
    "zoo": (
        "closure_list",
        "fullgraph_print",
        "recompile_size",
        "tensor_assert",
    ),
    "fixes": (
        "row_by_tensor",
        "trap_one_call_trains",
        "cached_property_table",
        "lock_around_call",
    ),
    "rules": ("float-change-1", "stride-change-1"),
    "registry": ("gb0170",),
}
"""A choice over fixes and kinds without a diff; the others are slow, all together."""


@cache
def tried(warm: WarmProcess, corpus: str, name: str) -> list[Tried]:
    """Tried once for all tests of a program."""
    return Trial(warm, programs(corpus)[name]).tried()


@cache
def programs(corpus: str) -> dict[str, Program]:
    return {program.name: program for program in CORPORA[corpus]()}


def chosen(*, models: bool = False) -> list[object]:
    found: list[object] = []
    for corpus in CORPORA:
        if (corpus == "models") != models:
            continue
        for name in programs(corpus):
            marks = [] if name in QUICK.get(corpus, ()) else [pytest.mark.slow]
            found.append(pytest.param(corpus, name, id=f"{corpus}-{name}", marks=marks))
    return found


def told(wrong: list[Tried]) -> str:
    return "\n".join(
        f"{one.label}: {one.advice.fix}: {one.result}: {one.words}\n{one.advice.diff}"
        for one in wrong
    )


def check(found: list[Tried], label: str) -> None:
    wrong = [one for one in found if one.result not in ("held", "no diff")]
    if label in SHORTFALLS:
        assert wrong, f"{label} holds now: take it from the list of shortfalls"
        assert all(one.result == "cause stays" for one in wrong), told(wrong)
        pytest.xfail(SHORTFALLS[label])
    assert not wrong, told(wrong)


@pytest.mark.parametrize(("corpus", "name"), chosen())
def test_the_first_advice_holds(warm: WarmProcess, corpus: str, name: str) -> None:
    found = tried(warm, corpus, name)
    for one in found:
        assert one.advice.text, f"no advice at all for {one.label}"
        assert one.own or not one.advice.diff or "site-packages" not in one.advice.diff
    check(found, f"{corpus}/{name}")


def model_names() -> list[object]:
    if find_spec("transformers") is None:
        return []
    return chosen(models=True)


# Each up to 1 min.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("corpus", "name"), model_names())
def test_the_first_advice_holds_for_models(warm: WarmProcess, corpus: str, name: str) -> None:
    found = tried(warm, corpus, name)
    check(found, f"{corpus}/{name}")
    for one in found:
        assert one.own or "site-packages" not in one.advice.diff, one.label


def test_what_falls_short_is_there_and_chosen_programs_too() -> None:
    known = {f"{corpus}/{name}" for corpus in QUICK for name in programs(corpus)}
    assert {label for label in SHORTFALLS if not label.startswith("models/")} <= known
    assert {f"{corpus}/{name}" for corpus, names in QUICK.items() for name in names} <= known
    assert sum(map(len, QUICK.values())) >= 11


# Files as they are: their diffs apply, and never to those of an installed package.

PROGRAM = """import torch


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    print("zwischen – größer", y.sum())
    return y * 2


f(torch.ones(3))
print(f(torch.ones(3)))"""


@pytest.mark.parametrize(
    "text",
    [
        # The diffs themselves are those of `test_advice_pure`: two real runs show the rest.
        pytest.param(PROGRAM + "\n", id="plain", marks=pytest.mark.slow),
        pytest.param(PROGRAM, id="no newline at the end", marks=pytest.mark.slow),
        pytest.param(PROGRAM.replace("\n", "\r\n"), id="crlf, no newline at the end"),
        pytest.param(PROGRAM.replace("    ", "\t") + "\n", id="tabs", marks=pytest.mark.slow),
        pytest.param("\ufeff" + PROGRAM + "\n", id="bom"),
    ],
)
def test_a_file_as_it_is(warm: WarmProcess, text: str) -> None:
    trial = Trial(warm, Program("program", "own", text, "src/deep down/program.py"))
    (one,) = trial.tried()
    assert one.advice.diff
    assert one.result == "held", one


LIBRARY = """def doubled(x):
    y = x * 2
    print("in the library", y.shape)
    return y + 1
"""
CALLER = """import os
import sys

import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "venv", "site-packages"))
from layers import doubled


@torch.compile(backend="eager")
def f(x):
    return doubled(x) - 1


print(f(torch.ones(3)))
"""


def test_an_installed_package_is_not_edited(warm: WarmProcess) -> None:
    beside = {"venv/site-packages/layers/__init__.py": LIBRARY}
    found = Trial(warm, Program("program", "own", CALLER, beside=beside)).tried()
    (one,) = found
    assert not one.own and one.rule == "print-call"
    assert "site-packages" not in one.advice.diff
    assert one.result in ("no diff", "held"), one
    assert one.advice.text
