"""The documentation is true: its commands run, its snippets run, its keys exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.analysis.digest import Digest
from compilescope.analysis.json_form import (
    EAGER_KEYS,
    FAILURE_KEYS,
    FINDING_KEYS,
    GUARD_KEYS,
    SITE_KEYS,
)
from compilescope.findings.recompiles import RecompiledFrame
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


@pytest.mark.torch
def test_the_console_session_runs(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ (.+)$", "\n".join(fenced("console")), re.M)
    assert commands
    for command in commands:
        done = shell(command, tmp_path)
        assert done.returncode == 0, done.stderr
    # Times, and so the order of causes, differ from run to run; the words are what one sees.
    said = _timeless(done.stderr + shell("compilescope show --all", tmp_path).stdout)
    for line in fenced("text")[0].splitlines():
        passing = r"compilescope \w+-tour|█|\d recompiles, |^ +\d +tour.py|^and \d|^Everything:"
        if line.strip() and not re.search(passing, line):
            assert _timeless(line) in said, line


def _timeless(text: str) -> str:
    """Without times, the version of torch, ranks, gaps and line breaks: which cause stands first,
    and so is wrapped otherwise, depends on times too."""
    text = re.sub(r"\d+(\.\d+)? m?s\b", "T", text)
    text = re.sub(r"torch \d+\.\d+\.\d+(\+\w+)?", "torch V", text)
    return " ".join(re.sub(r"^ +\d+ ", " ", text, flags=re.M).split())


@pytest.mark.torch
def test_the_python_snippet_runs(tmp_path: Path) -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", page_text("index"), re.S)
    script = tmp_path / "snippet.py"
    script.write_text(snippet)
    done = shell(f"{sys.executable} {script}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("GB0170 7\n")


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
    for path in (ROOT / "src/compilescope/torchapi/hooks").glob("[a-z]*.py"):
        hooks = re.findall(r'id="([\w-]+)"', path.read_text())
        assert hooks and all(f"`{hook}`" in capture for hook in hooks), path.name
    everything = "".join(path.read_text(encoding="utf-8") for path in pages())
    for path in (ROOT / "src/compilescope/cli/commands").glob("[a-z]*"):
        name = path.stem.replace("_", "-")
        assert f"compilescope {name}" in everything, name


def test_json_of_every_command_parses(tmp_path: Path) -> None:
    for command in ("list", "clean --yes"):
        done = shell(f"compilescope {command} --json", tmp_path)
        assert isinstance(json.loads(done.stdout), dict)
