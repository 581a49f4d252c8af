"""Random graphs; benchmarks/mini_fuzz.py runs thousands."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from backends.mini.fuzzing import Fuzzer

pytestmark = pytest.mark.torch


def _problems(trials):
    return [(t.seed, t.setting, t.problems) for t in trials if t.problems]


def test_the_interpreter_with_each_pass_on_and_off(library):
    fuzzer = Fuzzer(library)
    assert _problems(fuzzer.interpreted(range(150))) == []
    assert fuzzer.programs > 140


@pytest.mark.slow
def test_generated_code(library, tmp_path):
    fuzzer = Fuzzer(library, str(tmp_path))
    assert _problems(fuzzer.compiled(range(25))) == []


@pytest.mark.parametrize("planted", ["dead_code", "fusion"])
def test_it_sees_planted_mistakes(library, planted):
    fuzzer = Fuzzer(library)
    fuzzer._interpreted = {"planted": f"\nplanted={planted}"}
    assert _problems(fuzzer.interpreted(range(150)))
