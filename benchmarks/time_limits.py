"""How well `minify --budget` and `fix --budget` are kept: wall clock of the whole command.

    python benchmarks/time_limits.py [--limits 20,60,120] [--only minify|fix] [--jobs 2]

Prints one row for each program and limit: seconds, their ratio to the limit, and what came of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_MODEL = """import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.head = nn.Linear(8, 2)

    def forward(self, x, temperature=1.0):
        for number, layer in enumerate(self.layers):
            x = torch.relu(layer(x))
            if x.sum() > 1000:
                x = x / 10
        print("mean", x.mean().item())
        return self.head(x) / temperature


torch.manual_seed(0)
{before}
model = Net()
model.compile(backend="eager")
for step in range({steps}):
    out = model(torch.randn(4 + step, 8), 1.0 + step)
print(out.shape)
"""
PROGRAMS = {
    "quick": _MODEL.format(before="", steps=3),
    "slow": _MODEL.format(before="time.sleep(6)", steps=3),
    "recompiling": _MODEL.format(before="torch._dynamo.config.recompile_limit = 4", steps=12),
}


def measure(command: str, program: str, limit: int, jobs: int, folder: Path) -> str:
    place = folder / f"{command}-{program}-{limit}"
    place.mkdir()
    (place / "train.py").write_text(PROGRAMS[program])
    tool = [sys.executable, "-m", "compilescope"]
    words = {
        "minify": ["minify", "--budget", str(limit), "--jobs", str(jobs), "train.py"],
        "fix": ["fix", "--budget", f"{limit}s", "train.py"],
    }[command]
    begun = time.perf_counter()
    done = subprocess.run(
        [*tool, *words],
        cwd=place,
        env={**os.environ, "COMPILESCOPE_DIR": str(place / "runs")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - begun
    last = _outcome(done.stdout, done.stderr)
    shutil.rmtree(place, ignore_errors=True)
    return f"| {command} | {program} | {limit} | {wall:.1f} | {wall / limit:.2f} | {last} |"


def _outcome(stdout: str, stderr: str) -> str:
    marks = ("Repro", "No repro", "verified:", "No fix", "no fix", "time budget", "Stopped at")
    found = [line for line in stdout.splitlines() if line.startswith(marks) or "verified:" in line]
    errors = [line for line in stderr.splitlines() if "error:" in line]
    return (found or errors or stdout.splitlines() or ["-"])[0][:100].replace("|", "/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", default="20,60,120")
    parser.add_argument("--only", choices=["minify", "fix"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    asked = parser.parse_args()
    print("| command | program | limit, s | took, s | ratio | outcome |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="compilescope-limits-") as folder:
        for command in [asked.only] if asked.only else ["minify", "fix"]:
            for program in asked.programs.split(","):
                for limit in map(int, asked.limits.split(",")):
                    row = measure(command, program, limit, asked.jobs, Path(folder))
                    print(row, flush=True)


if __name__ == "__main__":
    main()
