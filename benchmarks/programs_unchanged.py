"""Does capture change programs? Each is run plainly and under `compilescope run -q`, and compared.

    python benchmarks/programs_unchanged.py [NAME...] [--plain-only] [--keep FOLDER] [--limit 1800]

Compared are stdout, stderr, the exit status or signal, and the bytes and modes of all files that
the program leaves in its folder. Addresses, times and pids in torch's own log lines are left out.
The run that was recorded must open (`show --json`), whatever the program did to itself. The
programs are in `subjects/unchanged.py`. The last line counts those that differ; the exit status
is 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from subjects.subject import Subject
from subjects.unchanged import PLAIN, PROGRAMS

_FOREIGN = ("PYTEST_", "COMPILESCOPE_", "TORCH", "PYTHON", "RANK", "WORLD_SIZE")
_LOG_PREFIX = re.compile(rb"^(\[rank\d+\]:)?([VDIWE])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ", re.M)
_VARYING = re.compile(rb"0x[0-9a-f]{6,}|\bPID \d+|pid[ =]\d+")


@dataclass(frozen=True)
class Left:
    """What a program leaves."""

    status: int
    stdout: bytes
    stderr: bytes
    files: dict[str, tuple[int, bytes]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--plain-only", action="store_true", help="leave out those with torch")
    parser.add_argument("--keep", metavar="FOLDER", help="where the runs go, to look at them")
    parser.add_argument("--limit", type=float, default=1800, help="seconds a program (1800)")
    asked = parser.parse_args()
    chosen = {name: PROGRAMS[name] for name in asked.names} or (
        PLAIN if asked.plain_only else PROGRAMS
    )
    changed = 0
    opened = 0
    with tempfile.TemporaryDirectory() as scratch:
        runs = Path(asked.keep or scratch) / "runs"
        for name, subject in chosen.items():
            found = differences(subject, runs / name, asked.limit)
            recorded = recorded_runs(runs / name)
            opened += len(recorded)
            found += [f"does not open: {fault}" for run in recorded if (fault := fault_of(run))]
            changed += bool(found)
            print(f"{name:24} {'; '.join(found) or 'same'}", flush=True)
    print(f"{changed} of {len(chosen)} programs changed; {opened} runs were looked at")
    return 1 if changed else 0


def recorded_runs(folder: Path) -> list[Path]:
    """The runs in a folder; a program that never started (bad options) has none."""
    return [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


def fault_of(run: Path) -> str:
    """Why a run cannot be read; empty if it can."""
    show = [sys.executable, "-m", "compilescope", "show", "--json", str(run)]
    done = subprocess.run(show, capture_output=True, timeout=60, check=False)
    try:
        json.loads(done.stdout)
    except ValueError:
        return f"status {done.returncode}, {done.stderr.decode(errors='replace')[-300:]!r}"
    return ""


def differences(subject: Subject, runs: Path, limit_s: float = 600) -> list[str]:
    """What is not the same in both; empty: nothing."""
    python = [*subject.around, sys.executable, *subject.flags]
    captured = [*python, "-m", "compilescope", "run", "-q", "--dir", str(runs)]
    with tempfile.TemporaryDirectory() as scratch:
        # One after the other in a folder of the same name: programs print where they are.
        folder = Path(scratch) / "work"
        one = left_by([*python, *subject.words], subject, folder, limit_s)
        two = left_by([*captured, *subject.words], subject, folder, limit_s)
    return [
        f"{name}: {getattr(one, name)!r} -> {getattr(two, name)!r}"
        for name in ("status", "stdout", "stderr", "files")
        if getattr(one, name) != getattr(two, name)
    ]


def left_by(command: list[str], subject: Subject, folder: Path, limit_s: float) -> Left:
    for name, text in {"program.py": subject.text, **subject.files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(subject),
        input=subject.stdin,
        capture_output=True,
        timeout=limit_s,
        check=False,
    )
    files = {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    shutil.rmtree(folder)
    return Left(done.returncode, _same(done.stdout), _same(done.stderr), files)


def _environment(subject: Subject) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return {**env, "PYTHONHASHSEED": "0", **subject.environment}


def _same(text: bytes) -> bytes:
    return _VARYING.sub(b"#", _LOG_PREFIX.sub(rb"\1\2 ", text))


if __name__ == "__main__":
    sys.exit(main())
