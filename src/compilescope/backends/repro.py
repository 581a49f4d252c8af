"""Repro scripts for judged graphs, each run in a fresh process before it is handed out.

A script that does not lead to the same violations there is thrown away, and the error says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from compilescope.backends.checking import ConstraintViolation
from compilescope.backends.mock import Judged, Repro
from compilescope.backends.repro_script import repro_script
from compilescope.settings import fresh_environment, read_settings
from compilescope.torchapi.graph_code import Unwritable

FOLDER = "compilescope-repros"
_SYMBOL = re.compile(r"\b[suz]\d+\b")
_WORD = re.compile(r"[^a-z0-9]+")
_known: dict[tuple[object, ...], Repro] = {}
"""A fresh process takes seconds: one for each set of violations."""


class Fact(msgspec.Struct, frozen=True, array_like=True):
    """What must come again for a repro to be one."""

    rule: str
    stage: str
    op: str
    found: str


def verified_repro(judged: Judged) -> Repro:
    """Write it, run it, and say what became of it."""
    found = [each for graph in judged.checked for each in graph.errors]
    places = frozenset((each.file, each.line) for each in found)
    key = (judged.backend, judged.configuration.name, frozenset(facts(found)), places)
    known = _known.get(key)
    if known is None or (known.path is not None and not os.path.exists(known.path)):
        known = _known[key] = _made(judged, found)
    return known


def facts(found: Iterable[ConstraintViolation]) -> set[Fact]:
    """Violations without what differs from script to script: lines, names of inputs, of symbols."""
    return {
        Fact(
            each.rule,
            each.stage,
            "input" if each.op.startswith(("input ", "parameter ")) else each.op,
            _SYMBOL.sub("s", each.found),
        )
        for each in found
    }


def _made(judged: Judged, found: list[ConstraintViolation]) -> Repro:
    try:
        text = repro_script(judged)
    except Unwritable as reason:
        return Repro(f"No repro: {reason}.")
    path = _path(judged, text)
    # Not under its own name until it has shown that it deserves it.
    draft = path.with_suffix(".unverified.py")
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        failure = _verify(draft, facts(found), judged.configuration.repro_timeout_s)
        if failure:
            draft.unlink()
            return Repro(f"No repro: {failure}.")
        draft.replace(path)
    except OSError as error:
        return Repro(f"No repro: {path.parent} cannot be written ({error.strerror}).")
    return Repro(f"Repro, verified in a fresh process: {path}", str(path))


def _path(judged: Judged, text: str) -> Path:
    given = judged.configuration.repro
    run = read_settings().run_dir
    folder = given if isinstance(given, Path) else (run / "repros" if run else Path(FOLDER))
    model = _WORD.sub("-", judged.checked[0].model.lower()).strip("-") or "graph"
    return folder / f"{model[:40]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"


def _verify(script: Path, wanted: set[Fact], timeout_s: float) -> str:
    """Why it is no repro; empty if it is one."""
    out = script.with_suffix(".json")
    command = [sys.executable, "-m", "compilescope.backends.replay", str(script), str(out)]
    try:
        done = subprocess.run(
            command,
            env=fresh_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            check=False,
        )
        said = done.stderr.decode(errors="replace").strip().splitlines()
        if done.returncode:
            return f"the script failed in a fresh process ({said[-1] if said else 'no word'})"
        seen = msgspec.json.decode(out.read_bytes(), type=list[Fact])
    except subprocess.TimeoutExpired:
        return f"it could not be verified within {timeout_s:g} s"
    except (OSError, msgspec.DecodeError):
        return "the fresh process left no answer"
    finally:
        out.unlink(missing_ok=True)
    again = set(seen)
    if again == wanted:
        return ""
    lost, other = wanted - again, again - wanted
    return (
        "in a fresh process the script led to other violations "
        f"({len(lost)} did not come again, {len(other)} are new)"
    )
