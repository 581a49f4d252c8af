"""Do verified fixes hold on numbers that the search has not seen?

    python benchmarks/fixes_elsewhere.py [--jobs 1] [--eager] FOLDER [name ...]

FOLDER is what `real_fixes.py --out` has kept. Each verified diff is applied to a copy of its
program. Both versions run with other seeds, and with other seeds and larger batches: eagerly, where
the printed text has to be the same and each parameter and gradient at the end equal but for
rounding; and compiled (but for --eager), where the fixed one must not lose more than the original.
What changes an installed package, and jobs of torchrun, are left out. Exit status: 1 if one does
not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from real_programs import Expectation, expectations, missing_packages

from compilescope.change.repair.trials.losses import losses_of
from compilescope.change.repair.trials.printed_output import compare_output
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.run import read_run

RUNNER = Path(__file__).parent / "subjects" / "elsewhere.py"
OTHERS = ((1, 0), (2, 1))
"""Added to seeds and to batch sizes."""
_LIMIT_S = 900.0
"""Chosen: far more than the slowest takes beside others."""
_NEAR = 1e-4
"""Relative to a parameter's largest number. Chosen: a schedule's number that comes as a tensor is
rounded otherwise, and a training loop makes much of little; what is wrong is off by far more."""


class Ran(NamedTuple):
    status: int
    stdout: bytes
    tensors: list[Any]
    lost: tuple[int, ...] = ()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--eager", action="store_true", help="run nothing compiled")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    work = []
    for file, expected in expectations(asked.names).items():
        kept = asked.folder / f"{file.stem}.json"
        if kept.exists() and not missing_packages(expected):
            answer = json.loads(kept.read_text())["answer"]
            own = f"+++ b/{file.name}\n" in answer.get("diff", "")
            if answer.get("verdict") == "verified" and expected.launcher != "torchrun" and own:
                work.append((file, expected, answer))
    with ThreadPoolExecutor(asked.jobs) as pool:
        checks = [(each[0], pool.submit(check, *each, eager=asked.eager)) for each in work]
        wrong = []
        for file, found in checks:
            wrong.append(found.result())
            print(f"{file.stem:28} {'; '.join(wrong[-1]) or 'holds'}", flush=True)
    print(f"{sum(not words for words in wrong)} of {len(work)} hold")
    return 1 if any(wrong) else 0


def check(file: Path, expected: Expectation, answer: dict[str, Any], *, eager: bool) -> list[str]:
    """What does not hold."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch, name) for name in ("old", "new")]
        for folder in folders:
            shutil.copytree(file.parent, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        done = subprocess.run(
            ["patch", "-p1", "--quiet"], input=answer["diff"].encode(), cwd=folders[1]
        )
        if done.returncode:
            return ["the diff cannot be applied"]
        for seed, more in OTHERS:
            shown = f"seed +{seed}, batch +{more}"
            old, new = (
                run(folder, expected, seed, more, answer["environment"], eager=True)
                for folder in folders
            )
            found += [f"{shown}: {words}" for words in differences(old, new)]
            if eager:
                continue
            old, new = (
                run(folder, expected, seed, more, answer["environment"], eager=False)
                for folder in folders
            )
            if new.status != old.status:
                found.append(f"{shown}, compiled: it ends with {new.status}, not {old.status}")
            elif new.lost > old.lost:
                found.append(f"{shown}: it loses {new.lost}, the original {old.lost}")
    return found


def run(
    folder: Path,
    expected: Expectation,
    seed: int,
    more: int,
    variables: dict[str, str],
    *,
    eager: bool,
) -> Ran:
    environment = {**os.environ, **(variables if folder.name == "new" else {})}
    out = folder / f"out-{seed}-{more}-{eager}"
    out.mkdir()
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(out / "cache")
    words = [str(RUNNER), str(seed), str(more), str(out / "tensors.pt"), *expected.command]
    if eager:
        environment["TORCHDYNAMO_DISABLE"] = "1"
        command = [sys.executable, *words]
    else:
        runs = ["--dir", str(out / "runs")]
        command = [sys.executable, "-m", "compilescope", "run", *runs, *expected.options, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, timeout=_LIMIT_S
    )
    if eager:
        kept = out / "tensors.pt"
        tensors = torch.load(kept, weights_only=True) if kept.exists() else []
        return Ran(done.returncode, done.stdout, tensors)
    recorded = [each for each in (out / "runs").glob("*") if each.is_dir()]
    lost = losses_of(digest(read_run(recorded[0])), 0)
    return Ran(done.returncode, b"", [], (*lost.every_call, lost.avoidable))


def differences(old: Ran, new: Ran) -> list[str]:
    if old.status != new.status:
        return [f"it ends with {new.status}, not {old.status}"]
    found = []
    printed = compare_output(old.stdout, new.stdout, frozenset(), [old.stdout])
    if printed.verdict == "fail":
        found.append(printed.words)
    if len(old.tensors) != len(new.tensors):
        return [*found, f"{len(new.tensors)} parameters, not {len(old.tensors)}"]
    for (owner, name, *was), (_, _, *now) in zip(old.tensors, new.tensors, strict=True):
        for what, one, other in zip(("", "grad of "), was, now, strict=True):
            if one.shape != other.shape:
                return [*found, f"{what}{owner}.{name} has another shape"]
            far = (one - other).abs().max().item() if one.numel() else 0.0
            if far > _NEAR * max(one.abs().max().item() if one.numel() else 0.0, _NEAR):
                return [*found, f"{what}{owner}.{name} is off by {far:.2g}"]
    return found


if __name__ == "__main__":
    sys.exit(main())
