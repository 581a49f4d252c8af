"""Diffs of real runs apply to files as they are, and never to those of an installed package."""

from __future__ import annotations

import pytest

from advice.running import Program, WarmProcess
from advice.trying import Trial

pytestmark = pytest.mark.torch

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
        PROGRAM + "\n",
        PROGRAM,
        PROGRAM.replace("\n", "\r\n"),
        PROGRAM.replace("    ", "\t") + "\n",
        "\ufeff" + PROGRAM + "\n",
    ],
    ids=["plain", "no newline at the end", "crlf", "tabs", "bom"],
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
