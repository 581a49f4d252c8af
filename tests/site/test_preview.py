"""The preview: it answers, follows changes, survives mistakes and ends when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.report.site.build import BuiltSite
from compilescope.report.site.content import SiteSources
from compilescope.report.site.preview import preview
from waiting import until


def write_table(path: Path, *titles: str) -> Path:
    entries = {f"GB{n:04d}": [{"Gb_type": title}] for n, title in enumerate(titles, 1)}
    path.write_text(json.dumps(entries))
    return path


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=600) as answer:
        return answer.read().decode()


def test_it_serves_and_builds_anew(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    table = write_table(tmp_path / "table.json", "First type")
    heard: list[BuiltSite | ToolError] = []
    with preview(tmp_path / "site", SiteSources(table, notes), 0, heard.append) as address:
        assert address.startswith("http://127.0.0.1:")
        assert "First type" in get(f"{address}gb/gb0001.html")
        assert "window.registrySearch" in get(f"{address}assets/site.js")
        for missing in ("gb/gb9999.html", "gb/", "../table.json", "%2e%2e/table.json"):
            with pytest.raises(urllib.error.HTTPError):
                get(address + missing)
        (notes / "gb0001.md").write_text("A word from *people*.")
        until(lambda: "<em>people</em>" in get(f"{address}gb/gb0001.html"))
        table.write_text('{"GB0001": [')
        until(lambda: any(isinstance(each, ToolError) for each in heard))
        assert "<em>people</em>" in get(f"{address}gb/gb0001.html")
        write_table(table, "First type", "Second type")
        until(lambda: "Second type" in get(f"{address}index.html"))
    with pytest.raises(OSError):
        get(address)


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.json", "A type")
    with preview(tmp_path / "one", SiteSources(table), 0, lambda _: None) as address:
        port = int(address.rsplit(":", 1)[1].strip("/"))
        with (
            pytest.raises(ToolError, match=f"port {port}"),
            preview(tmp_path / "two", SiteSources(table), port, lambda _: None),
        ):
            pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    table = write_table(tmp_path / "table.json", "A type")
    command = [sys.executable, "-m", "compilescope", "registry", "serve", "--port", "0"]
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [*command, "--file", str(table)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+/", line)
    assert address, line + (process.communicate(timeout=600)[1] or "")
    assert "A type" in get(address[0] + "gb/gb0001.html")
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert list((tmp_path / "tmp").iterdir()) == []
