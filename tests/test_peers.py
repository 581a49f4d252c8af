"""The comparison with other tools scores what they say, and a wrong truth scores nothing."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.torch

pytest.importorskip("torch")

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "peers.py"

TINY = """\
import torch


def step(x):
    y = x.sin()
    print("seen")
    return y.cos()


def build():
    return step, (torch.ones(3),)


if __name__ == "__main__":
    function, args = build()
    out = torch.compile(function, backend="eager")(*args)
    print("sum", round(float(out.sum()), 3))
"""


@pytest.fixture(scope="module")
def peers() -> Any:
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("peers_benchmark", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    for name in [name for name in sys.modules if name.split(".")[0] in {"peers", spec.name}]:
        del sys.modules[name]


def of(peers: ModuleType, name: str) -> Any:
    return importlib.import_module(f"peers.{name}")


@pytest.mark.slow
def test_scores_follow_the_truth(peers: ModuleType, tmp_path: Path) -> None:
    truths = of(peers, "truths")
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "tiny.py").write_text(TINY)
    loss = truths.Loss('print("seen")', ("builtin operator",))
    program = truths.Program("tiny", losses=(loss,), folder=folder)
    answers = peers.Answers(tmp_path / "answers", 1)
    tools = [peers.every_tool()[name] for name in ("explain", "TORCH_LOGS", "compilescope")]
    with ThreadPoolExecutor() as pool:
        plain = peers.every_tool()["python"]
        list(pool.map(lambda tool: answers.get(tool, "watch", program), [plain, *tools]))

    for row in peers.rows_of(tools, [program], ["watch"], answers):
        assert {row.scores[job] for job in ("lines", "causes", "count")} == {(1, 1)}, row
    table = peers.tables(peers.rows_of(tools, [program], ["watch"], answers), tools)[0]
    assert "| lines | 1/1 | 1/1 | 1/1 |" in table

    wrong = [
        ("lines", truths.Loss("y = x.sin()", loss.words)),
        ("causes", truths.Loss(loss.line, ("data-dependent branching",))),
    ]
    for job, other in wrong:
        changed = dataclasses.replace(program, losses=(other,))
        for row in peers.rows_of(tools, [changed], ["watch"], answers):
            assert row.scores[job] == (0, 1), (job, row)
    twice = dataclasses.replace(program, losses=(loss, loss))
    clean = dataclasses.replace(program, losses=())
    for row in peers.rows_of(tools, [twice], ["watch"], answers):
        assert row.scores["count"] == (0, 1), row
    for row in peers.rows_of(tools, [clean], ["watch"], answers):
        assert row.scores["clean"] == (0, 1), row


def test_numbers_and_repros_can_fail(peers: ModuleType) -> None:
    scoring, truths, Answer = of(peers, "scoring"), of(peers, "truths"), of(peers, "tool").Answer
    wrong = next(program for program in truths.TRUTHS if program.part)
    file, line = truths.place(wrong, wrong.wrong)
    right = Answer(verdict=f"wrong operation: relu at {file}:{line}")
    beside = Answer(verdict=f"wrong operation: cos at {file}:{line}1")
    assert scoring.localise_scores(wrong, right)["wrong line"] == (1, 1)
    assert scoring.localise_scores(wrong, right)["part"] == (0, 1)
    assert scoring.localise_scores(wrong, beside)["operation"] == (0, 1)
    assert scoring.localise_scores(wrong, beside)["wrong line"] == (0, 1)
    crash = next(program for program in truths.TRUTHS if program.error)
    assert scoring.shrink_scores(crash, Answer(crash.error, status=1)) == {"repro": (1, 1)}
    assert scoring.shrink_scores(crash, Answer(crash.error, status=0)) == {"repro": (0, 1)}
    assert scoring.shrink_scores(crash, Answer("InvalidBackend", status=1)) == {"repro": (0, 1)}
    assert scoring.operations("def forward(self, x):\n    return torch.erf(x) + 1\n") == 2


def test_truths_name_one_line_and_no_word_of_the_program(peers: ModuleType) -> None:
    truths = of(peers, "truths")
    for program in truths.TRUTHS:
        try:
            assert truths.spoilt_words(program) == [], program.name
            for loss in program.losses:
                truths.place(program, loss.line, loss.file)
        except ModuleNotFoundError:  # its library is not installed
            continue
        for guard in program.guards:
            truths.place(program, guard.line)
        if program.wrong:
            truths.place(program, program.wrong)


def test_missing_tools_are_said(peers: ModuleType) -> None:
    tool = of(peers, "tool").Tool("tlparse", packages=("no-such-package-here",))
    table = peers.absent_table([tool, peers.every_tool()["GraphMend"]])
    assert "| tlparse | not installed: pip install no-such-package-here |" in table
    assert "| GraphMend | no package of that name" in table


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
def test_every_program(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARK), "--json", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ours = [row for row in json.loads(done.stdout) if row["tool"] == "compilescope"]
    for row in ours:
        for job in ("lines", "causes", "count", "guards", "eager", "clean", "wrong line", "repro"):
            got, total = row["scores"].get(job, (0, 0))
            assert got == total, (job, row)
