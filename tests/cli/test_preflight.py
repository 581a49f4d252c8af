"""`compilescope preflight`: a program's graphs against devices, on the user's own lines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import called
from compilescope.knowledge.analysis.device_checks import device_checks
from compilescope.record.header import read_header
from compilescope.record.run import read_run

pytestmark = pytest.mark.torch

DEVICE = """
name = "strict"
title = "A device for tests"

[dtypes]
supported = ["float32", "int32", "bool"]

[layout]
formats = ["contiguous"]

[memory]
peak_bytes = "1 MiB"

[ops]
denied = ["aten.sort"]

[[shapes.alignment]]
multiple = 8
"""
EASY = 'name = "easy"\n[dtypes]\nsupported = ["float32", "float64", "int64", "bool"]\n'

PROGRAM = """
import sys
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)

    def forward(self, x):
        y = self.layer(x)
        y = y.transpose(0, 1) * 2              #: layout
        y = torch.nn.functional.gelu(y.contiguous())
        z = y.double()                         #: dtype
        if z.sum() > 1e9:
            print("never seen")
        return torch.sort(y)[0][:, :5] * 1     #: operators shape


model = Net()
with torch.no_grad():
    torch.compile(model, backend="eager")(torch.randn(8, 16))
if "--train" in sys.argv:
    torch.compile(model, backend="aot_eager")(torch.randn(8, 16)).sum().backward()
print("the program's own words", sys.argv[1:])
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("preflight")
    (folder / "strict.toml").write_text(DEVICE)
    (folder / "easy.toml").write_text(EASY)
    (folder / "net.py").write_text(PROGRAM)
    return folder


def call(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compilescope", "preflight", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=place)


@pytest.fixture(scope="module")
def judged(place: Path) -> dict[str, Any]:
    devices = ("--device", "strict.toml", "--device", "easy.toml")
    done = call(place, "net.py", "--train", *devices, "--json")
    assert done.returncode == 1, done.stderr
    assert "the program's own words ['--train']" in done.stdout
    value: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return value


def marked(rule: str) -> set[int]:
    lines = enumerate(PROGRAM.splitlines(), 1)
    return {number for number, line in lines if "#:" in line and rule in line.split("#:")[1]}


@pytest.mark.parametrize("rule", ["layout", "dtype", "operators"])
def test_every_violation_is_on_its_own_line(judged: dict[str, Any], rule: str) -> None:
    found = [v for v in judged["devices"]["strict"]["violations"] if v["rule"] == rule]
    assert marked(rule) <= {v["line"] for v in found}
    assert all(v["file"].endswith("net.py") and v["source"] for v in found)


def test_the_last_slice_is_not_aligned(judged: dict[str, Any]) -> None:
    found = [v for v in judged["devices"]["strict"]["violations"] if v["rule"] == "shape"]
    assert marked("shape") <= {v["line"] for v in found}
    assert any("5" in v["found"] and "8" in v["allowed"] and v["remedy"] for v in found)


def test_the_keys_that_are_promised(judged: dict[str, Any]) -> None:
    report = judged["devices"]["strict"]
    assert {"violations", "unknown", "not_checked", "peak_bytes", "peak_at", "coverage"} <= set(
        report
    )
    wanted = {"rule", "op", "file", "line", "source", "found", "allowed", "remedy", "stage"}
    assert all(wanted <= set(violation) for violation in report["violations"])
    assert report["peak_bytes"] > 16 * 16 * 4
    assert 0 < report["coverage"] < 100


def test_what_a_break_hides_is_named(judged: dict[str, Any]) -> None:
    said = judged["devices"]["strict"]["not_checked"]
    branch = next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if "z.sum() > 1e9" in line)
    assert any(code["line"] == branch for code in said)


def test_an_easy_device_takes_it(judged: dict[str, Any]) -> None:
    easy = judged["devices"]["easy"]
    assert easy["violations"] == [] and easy["unknown"] == []
    assert easy["coverage"] == 100.0


def test_the_run_keeps_what_each_device_said(place: Path, judged: dict[str, Any]) -> None:
    checks = {each.device: each for each in device_checks(read_run(newest_run(place)))}
    assert (checks["strict"].outcome, checks["strict"].title) == ("fail", "A device for tests")
    refused = [each["severity"] for each in judged["devices"]["strict"]["violations"]]
    assert checks["strict"].errors == refused.count("error")
    assert (checks["easy"].outcome, checks["easy"].errors) == ("pass", 0)


def newest_run(place: Path) -> Path:
    runs = (place / ".compilescope").glob("*-net")
    return max(runs, key=lambda run: read_header(run).started_ns)


def test_a_recorded_run_keeps_it_too_but_nobody_elses(place: Path, tmp_path: Path) -> None:
    other = tmp_path / ".compilescope"
    run = newest_run(place)
    shutil.copytree(run, other / run.name)
    (other / run.name / "seals.json").unlink()
    (place / "third.toml").write_text(EASY.replace("easy", "third"))
    for home in (place / ".compilescope", other):
        done = call(place, "--device", "third.toml", "--run", run.name, "--dir", str(home))
        assert done.returncode == 0, done.stderr
    assert "third" in {each.device for each in device_checks(read_run(run))}
    assert "third" not in {each.device for each in device_checks(read_run(other / run.name))}


def test_the_backward_pass_is_checked_where_it_is_recorded(judged: dict[str, Any]) -> None:
    report = judged["devices"]["strict"]
    backward = [v for v in report["violations"] if v["stage"] == "aot_backward"]
    assert backward and all(v["file"].endswith("net.py") for v in backward)


@pytest.mark.slow
def test_a_backward_pass_that_nobody_recorded_is_said(place: Path) -> None:
    text = PROGRAM.replace("aot_eager", "eager")
    (place / "eager_train.py").write_text(text)
    done = call(place, "eager_train.py", "--train", "--device", "easy.toml", "--json")
    said = json.loads(done.stdout.splitlines()[-1])["devices"]["easy"]["not_checked"]
    assert any("backward pass" in code["what"] for code in said)


def test_for_people(place: Path, judged: dict[str, Any]) -> None:
    """The run is on disk: it is drawn again, not made again."""
    devices = ("--device", "strict.toml", "--device", "easy.toml")
    done = called("preflight", "--run", judged["run"], *devices, cwd=place)
    assert done.returncode == 1
    text = " ".join(done.stdout.split())
    assert (
        "strict does not support" in text
        and "easy supports all of" in text
        and "Not checked" in text
    )
    # A command to copy stays in one line.
    lines = [line for line in done.stdout.splitlines() if "compilescope preflight" not in line]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("net.py",), "preflight needs a device"),
        (("net.py", "--device", "nosuch"), "nosuch"),
        (("missing.py", "--device", "easy.toml"), "missing.py"),
        (("--run", "zzz", "--device", "easy.toml"), "zzz"),
    ],
)
def test_what_a_user_can_get_wrong(place: Path, words: tuple[str, ...], said: str) -> None:
    done = called("preflight", *words, cwd=place)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr


def test_a_program_that_fails_cannot_be_told(place: Path) -> None:
    (place / "dies.py").write_text("import sys\nsys.exit(3)\n")
    done = called("preflight", "dies.py", "--device", "easy.toml", cwd=place)
    assert done.returncode == 2 and "ended with status 3" in done.stdout


@pytest.mark.slow
def test_warnings_fail_where_they_are_asked_to(place: Path) -> None:
    padded = EASY + "[[shapes.alignment]]\nmultiple = 8\notherwise = 'padded'\n"
    (place / "padded.toml").write_text(padded.replace("easy", "padded"))
    words = ("net.py", "--device", "padded.toml", "--fail-on")
    assert call(place, *words, "error").returncode == 0
    assert call(place, *words, "warning").returncode == 1


GROUPED = """
import torch

net = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3, groups=2), torch.nn.Flatten(2))
net = torch.compile(net, backend="aot_eager", dynamic=True)
net(torch.randn(3, 4, 8, 8, requires_grad=True)).sum().backward()
"""


@pytest.mark.slow
def test_arguments_and_sizes_of_the_backward_pass_are_known(place: Path) -> None:
    """Its graph is taken from the compiler as it is: torch's print of it names no argument."""
    (place / "grouped.py").write_text(GROUPED)
    (place / "grouped.toml").write_text(
        'name = "grouped"\n[layout]\nformats = ["contiguous"]\noverlapping = false\n'
        '[[ops.conditions]]\nop = "aten.convolution_backward"\nwhen = "groups > 1"\n'
    )
    done = call(place, "grouped.py", "--device", "grouped.toml", "--json")
    report = json.loads(done.stdout.splitlines()[-1])["devices"]["grouped"]
    assert report["unknown"] == []
    found = [v for v in report["violations"] if v["rule"] == "operators"]
    assert [(v["stage"], v["found"]) for v in found] == [("aot_backward", "groups = 2")]


@pytest.mark.slow
def test_what_autograd_keeps_counts_for_the_peak(place: Path) -> None:
    text = """
import sys, torch
x = torch.randn(1000, requires_grad="--train" in sys.argv)
torch.compile(lambda x: x.exp().exp().exp().sum(), backend="eager")(x)
"""
    (place / "chain.py").write_text(text)
    peaks = []
    for words in ((), ("--train",)):
        done = call(place, "chain.py", *words, "--device", "easy.toml", "--json")
        report = json.loads(done.stdout.splitlines()[-1])["devices"]["easy"]
        peaks.append(report["peak_bytes"])
    assert peaks == [3 * 4000, 4 * 4000 + 4]


@pytest.mark.slow
def test_an_operator_that_nobody_knows_is_no_clean_pass(place: Path) -> None:
    (place / "unknown.toml").write_text(
        EASY.replace("easy", "unknown") + '[ops]\ndenied = ["aten.nonzro"]\n'
    )
    (place / "tiny.py").write_text(
        "import torch\ntorch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))\n"
    )
    done = call(place, "tiny.py", "--device", "unknown.toml", "--json")
    said = json.loads(done.stdout.splitlines()[-1])["doubt"]
    assert done.returncode == 2
    assert said.startswith("unknown.toml:5: ops.denied: this torch has no operator aten.nonzro.")
    done = call(place, "tiny.py", "--device", "unknown.toml")
    assert done.returncode == 2 and "Did you mean aten.nonzero?" in done.stdout
