"""Worker processes that draw: shared, kept, bounded, and nobody's trouble but their own."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException

import samples
from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.apps.dashboard.drawing_workers import (
    DrawingWorkers,
    DrawnPage,
    PageCache,
    StillDrawing,
    size_of,
)
from compilescope.base.errors import ToolError
from drawing_tasks import crash, dawdle, delete, pid_of, priority, refuse, tally
from gone import is_gone


def with_drawing(work: Callable[[DrawingWorkers], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        drawing = DrawingWorkers(**{"workers": 1, "patience": 600, **options})
        try:
            return await work(drawing)
        finally:
            await drawing.close()

    return asyncio.run(main())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return samples.store(samples.RUNS["empty"], tmp_path / "home", "abc-run")


def test_equal_calls_share_one_and_the_answer_is_kept_until_the_run_changes(
    folder: Path, tmp_path: Path
) -> None:
    log = str(tmp_path / "log")

    async def work(drawing: DrawingWorkers) -> None:
        first = await asyncio.gather(*(drawing.draw(tally, folder, log) for _ in range(5)))
        assert first == [1] * 5
        assert await drawing.draw(tally, folder, log) == 1
        with (folder / "events-0.jsonl").open("ab") as file:
            file.write(b"\n")
        assert await drawing.draw(tally, folder, log) == 2
        assert await drawing.draw(tally, folder, log) == 2
        assert await drawing.draw(priority) > os.nice(0)
        tasks = [asyncio.create_task(drawing.draw(dawdle, log, n)) for n in range(3)]
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert answers[:2] == ["done", "done"]
        assert isinstance(answers[2], HTTPException) and "Too many" in answers[2].detail

    with_drawing(work, most_waiting=2)


def test_what_goes_wrong_is_told_and_harms_nothing_else(folder: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def work(drawing: DrawingWorkers) -> None:
        with pytest.raises(ToolError, match="damaged") as refused:
            await drawing.draw(refuse, folder)
        assert refused.value.hint == "Record it again."
        other = asyncio.create_task(drawing.draw(dawdle, str(gate)))
        with pytest.raises(HTTPException, match="died") as died:
            await drawing.draw(crash, 1)
        assert died.value.status_code == 503
        gate.touch()
        assert await other == "done"
        # Nobody tries it again at once: a page that asks by itself would kill worker after worker.
        before = drawing.workers
        with pytest.raises(HTTPException, match="died"):
            await drawing.draw(crash, 1)
        assert drawing.workers == before
        with pytest.raises(MissingPage, match="abc-run is no longer there"):
            await drawing.draw(delete, folder)
        assert await drawing.draw(dawdle, str(gate), 1) == "done"

    with_drawing(work, workers=2)


def test_a_long_drawing_goes_on_while_readers_are_told_to_wait(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def work(drawing: DrawingWorkers) -> None:
        for _ in range(2):
            with pytest.raises(StillDrawing):
                await drawing.draw(dawdle, str(gate))
        gate.touch()
        assert await drawing.draw(dawdle, str(gate), patience=600) == "done"

    with_drawing(work, patience=0.05)


def test_a_worker_is_replaced_after_some_work_and_when_it_finds_no_end(tmp_path: Path) -> None:
    async def work(drawing: DrawingWorkers) -> list[int]:
        pids = [await drawing.draw(pid_of, number) for number in range(3)]
        assert pids[0] == pids[1] != pids[2]
        assert await asyncio.to_thread(is_gone, pids[0])
        drawing._limit = 0.2
        with pytest.raises(HTTPException, match=r"not drawn within 0\.2 s"):
            await drawing.draw(dawdle, str(tmp_path / "never"))
        drawing._limit = 60
        assert await asyncio.to_thread(is_gone, pids[2])
        assert await drawing.draw(pid_of, 3) not in pids
        return drawing.workers

    for pid in with_drawing(work, tasks_each=2):
        assert is_gone(pid)


def test_a_worker_that_cannot_be_started_is_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where too many files are open."""

    async def work(drawing: DrawingWorkers) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("multiprocessing.util.spawnv_passfds", full)
            with pytest.raises(HTTPException) as error:
                await drawing.draw(pid_of, 1)
            assert error.value.status_code == 503
            assert "Too many open files" in error.value.detail
        assert await drawing.draw(pid_of, 1) in drawing.workers

    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with_drawing(work)


def test_answers_are_kept_up_to_a_size() -> None:
    kept, small, large = PageCache(100), DrawnPage("x", 40), DrawnPage("y", 60)
    now, later = (("now",),), (("later",),)
    for name in "abc":
        kept.put(name, now, small)
    assert kept.get("a", now) is None
    assert kept.get("b", now) == small
    kept.put("d", now, small)
    assert (kept.get("b", now), kept.get("c", now)) == (small, None)
    assert kept.get("b", later) is None
    kept.put("e", now, large)  # More than half of all: not worth the others.
    assert kept.get("e", now) is None
    assert size_of(("x" * 1000, {"y": ["z" * 500]})) > 1500


_KILLED = """
import asyncio, os, signal
from compilescope.apps.dashboard.drawing_workers import DrawingWorkers

async def main():
    print(await DrawingWorkers(workers=1, patience=600).draw(os.getpid), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_no_worker_outlives_a_server_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(_KILLED)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert ended.returncode == -signal.SIGKILL
    assert is_gone(int(ended.stdout))
