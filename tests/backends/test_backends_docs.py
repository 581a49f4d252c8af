"""docs/guides/backends.md is true: its programs run, and print what it says they print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.base.settings import MockSettings
from docs_pages import page_text

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from compilescope.backends.mock.configuration import configure  # noqa: E402
from compilescope.backends.mock.messages import notice  # noqa: E402
from compilescope.base.settings import fresh_environment  # noqa: E402
from compilescope.record.byte_counts import shown_bytes  # noqa: E402

TEXT = page_text("backends")
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.S)
OUTPUTS = re.findall(r"```text\n(.*?)```", TEXT, re.S)


def shown_below(program: str) -> str:
    """What the page says that a program prints."""
    shown = re.search(r"```text\n(.*?)```", TEXT.partition(program)[2], re.S)
    assert shown is not None
    return shown[1]


def run(program: str, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / name
    file.write_text(program)
    return subprocess.run(
        [sys.executable, name], cwd=folder, capture_output=True, text=True, env=fresh_environment()
    )


@pytest.mark.slow
def test_the_refusal_reads_as_shown(tmp_path: Path) -> None:
    program = PROGRAMS[0].replace('device="npu-a"', 'device="npu-a", repro=False')
    done = run(program, "model.py", tmp_path)
    assert done.returncode == 1
    shown = OUTPUTS[1].partition("\n\nRepros, each verified")[0]
    assert done.stderr.rstrip().endswith(shown), done.stderr


@pytest.mark.slow
def test_the_constraints_are_made_and_take_their_own_advice(tmp_path: Path) -> None:
    backend = "compilescope.mock_backend(constraints=constraints, repro=False)"
    use = f"import torch\nimport compilescope\n{PROGRAMS[1]}\n"
    use += f"torch.compile(lambda x: x * 2, backend={backend})(torch.randn(2, 8192))\n"
    done = run(use, "own.py", tmp_path)
    assert "NoWideRows: input x" in done.stderr
    assert "Split it: `x.split(4096, -1)`." in done.stderr


@pytest.mark.slow
def test_the_kept_stages_are_as_shown(tmp_path: Path, cxx: None) -> None:
    done = run(PROGRAMS[2], "train.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown_below(PROGRAMS[2])
    assert (tmp_path / "kept" / "0-Net" / "aot_backward.svg").exists()


def test_the_defaults_are_as_shown() -> None:
    rows = dict(re.findall(r"\| `\w+` \| `(MOCK_\w+)` \| ([^|]+?) \|", TEXT))
    usual = configure()
    assert usual.strict and usual.device is not None and usual.device.memory.peak_bytes is not None
    assert rows == {
        "MOCK_STRICT": "1",
        "MOCK_ALIGNMENT": "1",
        "MOCK_ALIGNMENT_DIMS": MockSettings().alignment_dims,
        "MOCK_MAX_MEMORY": "none",
        "MOCK_MAX_PEAK_MEMORY": shown_bytes(usual.device.memory.peak_bytes),
    }
    assert not usual.device.shapes.alignment and usual.device.memory.tensor_bytes is None
    assert notice(usual.device, "mock_backend") == OUTPUTS[0].rstrip()
