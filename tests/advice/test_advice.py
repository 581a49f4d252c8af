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
        "explicit_break",
        "fullgraph_print",
        "random_instance",
        "recompile_global_flag",
        "recompile_size",
        "tensor_assert",
    ),
    "fixes": (
        "row_by_tensor",
        "trap_one_call_trains",
        "warning_of_deprecation",
        "scale_by_condition",
        "trap_same_tensor_returned",
        "cached_property_table",
        "grad_fn_check",
        "lock_around_call",
        "zip_iterator",
        "whole_train_step",
    ),
    "rules": ("dtype-change-1", "float-change-1", "layer-index-1", "stride-change-1"),
    "registry": ("gb0092", "gb0170"),
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
    assert sum(map(len, QUICK.values())) >= 23
