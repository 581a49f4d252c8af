"""`compilescope demo --model`: a small model of transformers through everything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compilescope.apps.demo.quick import Knobs, _commands, padded_tokens, program_text
from compilescope.base.errors import ToolError

TOOL = [sys.executable, "-m", "compilescope", "demo", "--backend", "aot_eager"]


def quick(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOOL, *words], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("text", "tokens"), [("0", 0), ("8", 8), ("0.25", 4), ("25%", 4), ("0.0", 0), ("50%", 8)]
)
def test_padding(text: str, tokens: int) -> None:
    assert padded_tokens(text, 16) == tokens


@pytest.mark.parametrize("text", ["16", "-1", "100%", "1.0", "some", "%", "nan", "1e999%", ""])
def test_padding_that_makes_no_sense(text: str) -> None:
    with pytest.raises(ToolError, match="--padding"):
        padded_tokens(text, 16)


def test_the_knobs_are_constants_of_the_program() -> None:
    knobs = Knobs("gpt2", batch=3, seq=24, padded=5, backend="a\\1", fail='ge"lu')
    names: dict[str, Any] = {}
    for line in program_text(knobs).splitlines():
        if line.startswith(("MODEL", "BATCH", "SEQ", "PADDED", "BACKEND", "FAIL_OP")):
            exec(line, names)
    assert (names["MODEL"], names["BATCH"], names["SEQ"]) == ("gpt2", 3, 24)
    assert (names["PADDED"], names["BACKEND"], names["FAIL_OP"]) == (5, "a\\1", 'ge"lu')


def test_runs_go_where_they_are_asked_to(tmp_path: Path) -> None:
    for _, command in _commands(Knobs("bert", home=tmp_path)):
        assert command.words[2:5].count("--dir") == 1 and str(tmp_path) in command.words
    for _, command in _commands(Knobs("bert")):
        assert "--dir" not in command.words


def test_a_device_that_is_not_there() -> None:
    pytest.importorskip("transformers")
    done = quick("--model", "bert", "--constraints", "nothing")
    assert done.returncode == 2 and "There is no device named 'nothing'." in done.stderr


def test_without_transformers() -> None:
    block = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'transformers' else find(name, *rest)\n"
        "sys.argv = ['compilescope', 'demo', '--model', 'bert']\n"
        "from compilescope.apps.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs transformers" in done.stderr and "compilescope[models]" in done.stderr


# About 1 min.
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_with_a_forced_failure(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = tmp_path / "quick"
    knobs = ("--batch", "3", "--seq", "12", "--padding", "5", "--constraints", "edge-dsp")
    done = quick("--model", "bert", *knobs, "--fail", "gelu", "--dir", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert "input_ids [3, 12]" in value["about"] and "BertModel" in value["about"]
    assert (value["graphs"], value["breaks"], value["verdict"]) == (1, 0, "pass")
    assert (value["device"], value["backend"]) == ("edge-dsp", "aot_eager")
    assert value["device_findings"]["errors"] > 0
    shown = subprocess.run([sys.executable, value["repro"]], capture_output=True, text=True)
    assert shown.returncode == 1 and "forced failure at gelu" in shown.stdout + shown.stderr
    assert "PADDED = 5 " in (folder / "quick.py").read_text()


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tolerances_reach_the_comparison(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    done = quick("--model", "vit", "--atol", "0.5", "--rtol", "0.25", "--dir", str(tmp_path / "q"))
    assert done.returncode == 0, done.stderr
    assert "--atol 0.5 --rtol 0.25" in done.stdout and "pixel_values [2, 3, 64, 64]" in done.stdout


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "brt"], "has no model family 'brt'. Did you mean "),
        (["--model", "bert", "--fail", "frobnicate"], "contains the operation 'frobnicate'"),
    ],
)
def test_what_there_is_not(words: list[str], sentence: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    done = quick(*words, "--dir", str(tmp_path / "q"))
    assert done.returncode == 2 and sentence in done.stderr and done.stdout == ""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "resnet", "vit", "mamba", "mixtral"])
def test_a_family_is_built_small(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "quick.py").write_text(program_text(Knobs(name, backend="eager", padded=4)))
    done = subprocess.run(
        [sys.executable, "quick.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    size = int(done.stdout.split(", ", 1)[1].split(" parameters")[0].replace(",", ""))
    assert size < 300_000
