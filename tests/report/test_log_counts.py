"""How many graphs a log has and how many would do: the same in every view."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from compilescope.apps.cli.main import group
from compilescope.apps.cli.report_formats import draw
from compilescope.logs.reader import read_logs
from compilescope.record.run import Run, read_run
from compilescope.report.explanation import explanation
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from logs.consoles import GOLDEN, golden_names

_COUNT = re.compile(r"(\d+) graphs instead of (\d+)")
_FEW = (
    "concurrent.dist_2rank_t213",
    "flags.c05_openxla_PT_XLA_DEBUG1",
    "ttlike.c04_nonzero.head.truncated_tail",
    "xla_lazy.c06_markstep_loop",
)


def check(run: Run) -> None:
    reading = Reading(run)
    seen = reading.digest
    expected = {(str(seen.graphs), str(seen.regions))} if seen.graphs > seen.regions else set()
    for form in ("terminal", "md", "html"):
        assert set(_COUNT.findall(draw([run], form, to_file=True))) == expected, form
    told = to_text(explanation(reading, range(1, len(reading.causes) + 1)))
    assert set(_COUNT.findall(told)) <= expected
    stored = json.loads(draw([run], "json", to_file=True))
    (summary,) = [each["summary"] for each in stored["reports"]]
    assert (summary["graphs"], summary["regions"]) == (seen.graphs, seen.regions)
    if seen.graphs > seen.regions:
        assert "no graph breaks" not in told.lower()


def read(folder: Path, name: str) -> Run:
    return read_run(read_logs([str(GOLDEN / f"{name}.log.xz")], folder).path)


@pytest.mark.parametrize("name", _FEW)
def test_counts_agree(name: str, tmp_path: Path) -> None:
    check(read(tmp_path, name))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in golden_names() if name not in _FEW])
def test_counts_agree_everywhere(name: str, tmp_path: Path) -> None:
    check(read(tmp_path, name))


def test_a_log_of_breaks_alone_counts_those(tmp_path: Path) -> None:
    """As `TORCH_LOGS=graph_breaks` writes it."""
    whole = lzma.decompress((GOLDEN / "t213.c02_item.log.xz").read_bytes()).splitlines(True)
    log = tmp_path / "breaks.log"
    log.write_bytes(b"".join(line for line in whole if b"[__graph_breaks]" in line))
    told = draw([read_run(read_logs([str(log)], tmp_path).path)], "terminal", to_file=True)
    assert "1 graph break. The log does not show the graphs." in told
    assert "TORCH_LOGS=+dynamo, which shows what each graph was compiled for" in " ".join(
        told.split()
    )


@pytest.mark.parametrize("name", ["no_TORCH_LOGS", "no_XLA_HLO_DEBUG", "release"])
def test_the_first_screen_says_what_a_device_log_lacks(name: str, tmp_path: Path) -> None:
    """With the command to run again: who has to ask for `--all` first will not."""
    log = str(GOLDEN / f"ttlike.c03_dataif.head.{name}.log.xz")
    done = CliRunner().invoke(group, ["logs", log, "--dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Not shown" not in done.stdout
    (command,) = [line for line in done.stdout.splitlines() if "TTMLIR_RUNTIME" in line]
    assert command.startswith("TORCH_LOGS=+dynamo,recompiles ") and "XLA_HLO_DEBUG=1" in command
