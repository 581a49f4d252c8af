"""A real program, started by `compilescope run`, seen while it runs; and in a browser."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axe_checks import grave_findings
from browsing import CONTRAST, focus_walk, looking
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import CompileTime, GraphCaptured
from compilescope.record.run import read_run
from dashboard_server import Served, serving
from live_runs import STARTED, LiveRun, Viewer, broke
from samples import CODE, HOSTILE
from waiting import until

_PROGRAM = """
import pathlib, time, torch

here = pathlib.Path(__file__).parent

def wait_for(name):
    while not (here / name).exists():
        time.sleep(0.02)

@torch.compile(backend="eager")
def f(x):
    x = x + 1
    print("a break")
    return x * 2

f(torch.ones(3))
wait_for("second")
f(torch.ones(4))
wait_for("end")
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".compilescope"
    home.mkdir()
    return home


@pytest.fixture
def board(home: Path) -> Iterator[Served]:
    with serving(home) as served:
        yield served


def runs(home: Path) -> list[str]:
    return [path.name for path in home.iterdir() if (path / "run.json").is_file()]


@pytest.mark.torch
@pytest.mark.parametrize("ending", ["itself", pytest.param("stopped", marks=pytest.mark.slow)])
def test_a_real_program_is_seen_while_it_runs(
    tmp_path: Path, home: Path, board: Served, ending: str
) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    words = [sys.executable, "-m", "compilescope", "run", "-q", "--dir", str(home), "program.py"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=tmp_path, **quiet) as launcher:
        try:
            until(lambda: bool(runs(home)))
            (run,) = runs(home)
            viewer = Viewer(board.base, run)
            until(lambda: viewer.totals.get("graphs") == 2)
            assert viewer.totals["breaks"] == 1 and viewer.totals["recompiles"] == 0
            text = " ".join(viewer.texts)
            assert "program.py:13" in text and "graph break" in text
            (tmp_path / "second").touch()
            until(lambda: viewer.totals["recompiles"] == 2)
            assert "expected 3, got 4" in " ".join(viewer.texts)
            if ending == "itself":
                (tmp_path / "end").touch()
            else:
                assert board.client.post(f"/runs/{run}/stop").status_code == 200
            assert viewer.closed.wait(600)
        finally:
            launcher.kill()
    assert viewer.end["state"] == "ended"
    said = {"itself": "Finished.", "stopped": "Killed by SIGINT."}[ending]
    assert viewer.end["words"] == said
    found = digest(read_run(home / run))
    assert len(found.sites) == viewer.totals["breaks"]
    assert found.graphs == viewer.totals["graphs"]
    assert sum(frame.count for frame in found.recompiles) == viewer.totals["recompiles"]
    assert found.compile_seconds == pytest.approx(viewer.totals["compile_seconds"], abs=0.002)
    assert len(set(viewer.seen)) == len(viewer.seen)


# --- In a browser ---

_KEYS = "return [...document.querySelectorAll('.live-feed .item')].map((e) => e.dataset.key)"
_TEXT = "return document.querySelector(arguments[0])?.textContent ?? ''"


def keys(driver: Any) -> list[str]:
    return [key.partition("/")[2] for key in driver.execute_script(_KEYS)]


def text(driver: Any, name: str) -> str:
    return str(driver.execute_script(_TEXT, f"[data-live={name}]"))


def open_live(driver: Any, board: Served, run: LiveRun) -> None:
    board.sign_in(driver)
    driver.get(f"{board.base}/runs/{run.name}")


@pytest.mark.browser
def test_the_page_follows_a_run_through_a_restart(home: Path, driver: Any) -> None:
    run = LiveRun(home)
    run.write(STARTED, broke("first"))
    with serving(home) as board:
        open_live(driver, board, run)
        until(lambda: keys(driver) == ["0.1", "0.0"])
        run.write(broke("<b>second</b>"), GraphCaptured("dynamo", ops=3, frame=CODE, region=CODE))
        until(lambda: keys(driver) == ["0.3", "0.2", "0.1", "0.0"])
        assert "Graph breaks2" in text(driver, "figures").replace("\n", "")
        port = board.options.port
    until(lambda: "connection is lost" in text(driver, "notice"))
    run.write(CompileTime(40_000_000, frame=CODE))
    with serving(home, port=port):
        until(lambda: keys(driver) == [f"0.{n}" for n in (4, 3, 2, 1, 0)])
        until(lambda: text(driver, "notice") == "")
        run.write(broke("after"))
        until(lambda: keys(driver)[0] == "0.5" and len(keys(driver)) == 6)
        run.end()
        until(lambda: "Finished." in text(driver, "notice"))
        assert text(driver, "state") == "ended"
        assert "3 graph breaks" in text(driver, "summary")
        link = "return document.querySelector('[data-live=notice] a').getAttribute('href')"
        assert driver.execute_script(link) == f"/runs/{run.name}"


@pytest.mark.browser
def test_filter_and_pause(home: Path, board: Served, driver: Any) -> None:
    run = LiveRun(home)
    run.write(STARTED, broke(1))
    open_live(driver, board, run)
    until(lambda: len(keys(driver)) == 2)
    driver.find_element("css selector", ".chip[data-kind=process]").click()
    hidden = "return [...document.querySelectorAll('.live-feed .item')].map((e) => e.hidden)"
    assert driver.execute_script(hidden) == [False, True]
    driver.find_element("css selector", "[data-live=pause]").click()
    run.write(broke(2), STARTED)
    until(lambda: text(driver, "new") == "Show 2 new")
    assert len(keys(driver)) == 2
    driver.find_element("css selector", "[data-live=new]").click()
    until(lambda: keys(driver) == ["0.3", "0.2", "0.1", "0.0"])
    assert driver.execute_script(hidden) == [True, False, False, True]


@pytest.mark.browser
def test_the_output_of_a_job_stands_beside_the_events(
    tmp_path: Path, home: Path, board: Served, driver: Any
) -> None:
    program = tmp_path / "printer.py"
    program.write_text(
        "import pathlib, time\n"
        "print('<b>one</b>', flush=True)\n"
        "for name in ('two', 'end'):\n"
        "    while not pathlib.Path(__file__).with_name(name).exists():\n"
        "        time.sleep(0.02)\n"
        "    print('line', name, flush=True)\n"
    )
    jobs = board.server.config.app.state.dashboard.jobs
    job = jobs.start(["run", "-q", "--dir", str(home), str(program)], tmp_path)
    until(lambda: bool(jobs.find(job.id).runs))
    (run,) = jobs.find(job.id).runs
    board.sign_in(driver)
    driver.get(f"{board.base}/runs/{run}")
    until(lambda: text(driver, "output") == "<b>one</b>\n")
    (tmp_path / "two").touch()
    until(lambda: text(driver, "output") == "<b>one</b>\nline two\n")
    with board.stranger() as stranger:
        page = stranger.get(f"/runs/{run}").text
        assert "Sign in" in page and "line two" not in page
    (tmp_path / "end").touch()
    until(lambda: "Finished." in text(driver, "notice"))
    until(lambda: text(driver, "output").endswith("line end\n"))


@pytest.mark.browser
def test_a_hidden_tab_lets_go_and_catches_up(home: Path, board: Served, driver: Any) -> None:
    """A browser has six connections for a server: tabs in the background must not use them up."""
    run = LiveRun(home)
    run.write(STARTED)
    open_live(driver, board, run)
    until(lambda: len(keys(driver)) == 1)
    streams = board.server.config.app.state.dashboard.streams
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    try:
        until(lambda: streams.open == 0)
        run.write(broke(1), broke(2))
    finally:
        driver.close()
        driver.switch_to.window(first)
    until(lambda: keys(driver) == ["0.2", "0.1", "0.0"])


@pytest.mark.browser
def test_stop_is_a_button(home: Path, board: Served, driver: Any) -> None:
    code = "print(1, flush=True)\nimport time\ntime.sleep(3600)"
    quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", code], **quiet) as launcher:
        assert launcher.stdout is not None and launcher.stdout.readline()
        run = LiveRun(home, launcher_pid=launcher.pid)
        run.write(STARTED)
        open_live(driver, board, run)
        until(lambda: len(keys(driver)) == 1)
        driver.find_element("css selector", "[data-live=stop] button").click()
        assert launcher.wait(600) == -signal.SIGINT


@pytest.mark.slow
@pytest.mark.browser
def test_a_flood_leaves_the_page_small(home: Path, board: Served, driver: Any) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    open_live(driver, board, run)
    until(lambda: len(keys(driver)) == 1)
    run.append(b"".join(run.line(broke(n % 7)) for n in range(10_000)))
    until(lambda: "more at the same time" in text(driver, "feed"))
    until(lambda: keys(driver)[0] == "0.10000")
    assert len(keys(driver)) <= 200
    counts = "return document.querySelector('.chip[data-kind=break] span').textContent"
    until(lambda: driver.execute_script(counts) == "10,000")


@pytest.mark.browser
def test_a_run_deleted_while_open_ends_with_a_message(
    home: Path, board: Served, driver: Any
) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    open_live(driver, board, run)
    until(lambda: len(keys(driver)) == 1)
    shutil.rmtree(run.folder)
    until(lambda: "deleted" in text(driver, "notice"))
    assert text(driver, "state") == "deleted"
    streams = board.server.config.app.state.dashboard.streams
    until(lambda: streams.open == 0)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1400, "light", marks=pytest.mark.slow), (400, "dark")]
)
def test_the_page_can_be_read_and_reached(
    home: Path, board: Served, driver: Any, width: int, scheme: str
) -> None:
    run = LiveRun(home, command=("model.py", HOSTILE), launcher_pid=os.getpid())
    run.write(STARTED, broke(HOSTILE), CompileTime(40_000_000, frame=CODE))
    with looking(driver, width, 900, scheme):
        open_live(driver, board, run)
        until(lambda: len(keys(driver)) == 3)
        driver.execute_script("document.getAnimations().forEach((each) => each.cancel())")
        assert driver.execute_script("return window.hurt") is None
        assert driver.execute_script(CONTRAST) == []
        assert grave_findings(driver) == []
        wide = "return document.documentElement.scrollWidth - innerWidth"
        assert driver.execute_script(wide) <= 0
        found = focus_walk(driver)
    assert not any(found.values()), found
