"""The documentation is true: its commands run, its snippets run, its keys exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.json_form import (
    EAGER_KEYS,
    FAILURE_KEYS,
    FINDING_KEYS,
    GUARD_KEYS,
    SITE_KEYS,
)
from compilescope.knowledge.findings.recompiles import RecompiledFrame
from docs_pages import page_text, pages

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BIN = str(Path(sys.executable).parent)


def shell(command: str, home: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    # Under pytest, a child would take our own test for its own.
    outer = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    env = {**outer, "PATH": f"{BIN}:{outer['PATH']}", "COMPILESCOPE_DIR": str(home)}
    return subprocess.run(command, shell=True, cwd=cwd, env=env, capture_output=True, text=True)


def fenced(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, re.S)


def test_the_make_targets_exist() -> None:
    for target in re.findall(r"^make (\S+)", "\n".join(fenced("sh")), re.M):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_every_key_is_documented() -> None:
    text = page_text("json")
    documented = set(re.findall(r"`(\w+)`", text)) | set(
        re.findall(r"\w+", " ".join(re.findall(r"`\{(.+?)\}`", text)))
    )
    lists = (SITE_KEYS, EAGER_KEYS, GUARD_KEYS, FAILURE_KEYS, FINDING_KEYS)
    for keys in (*lists, Digest.__struct_fields__, RecompiledFrame.__struct_fields__):
        assert not set(keys) - documented


def test_the_promised_keys_are_there() -> None:
    """What the first release promised; later ones only add."""
    assert set(Digest.__struct_fields__) >= {
        "run", "torch", "graphs", "events", "unread", "tool_faults", "cut_short", "compile_seconds",
        "sites", "eager_frames", "recompiles", "failures",
    }  # fmt: skip
    assert set(SITE_KEYS) >= {
        "gb_id", "gb_type", "file", "line", "column", "function", "source", "events", "ranks",
    }  # fmt: skip
    assert set(EAGER_KEYS) >= {"file", "line", "function", "reason"}
    recompiled = {"file", "line", "function", "count", "causes"}
    assert set(RecompiledFrame.__struct_fields__) >= recompiled
    assert set(GUARD_KEYS) >= {"guard", "expected", "actual", "file", "line"}


def test_every_hook_and_command_has_its_words() -> None:
    capture = page_text("capture")
    for path in (ROOT / "src/compilescope/instrument/torchapi/hooks").glob("[a-z]*.py"):
        hooks = re.findall(r'id="([\w-]+)"', path.read_text())
        assert hooks and all(f"`{hook}`" in capture for hook in hooks), path.name
    everything = "".join(path.read_text(encoding="utf-8") for path in pages())
    for path in (ROOT / "src/compilescope/apps/cli/commands").glob("[a-z]*"):
        name = path.stem.replace("_", "-")
        assert f"compilescope {name}" in everything, name


def test_json_of_every_command_parses(tmp_path: Path) -> None:
    for command in ("runs", "runs clean --yes", "list"):
        done = shell(f"compilescope {command} --json", tmp_path)
        assert isinstance(json.loads(done.stdout), dict)
