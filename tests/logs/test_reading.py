"""Several logs become one run: ranks, processes, formats in one file."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.digest import digest
from compilescope.logs import reader
from compilescope.logs.reader import read_logs
from compilescope.record import bodies
from compilescope.record.run import read_run
from logs.traces import GOLDEN, golden, record


def rank_files(folder: Path, ranks: int) -> list[str]:
    folder.mkdir()
    data = golden("eager")
    names = []
    for rank in range(ranks):
        path = folder / f"dedicated_log_torch_trace_rank_{rank}_x{rank}.log"
        path.write_bytes(data)
        names.append(str(path))
    return names


def test_one_file_a_rank_is_one_run(tmp_path: Path) -> None:
    rank_files(tmp_path / "trace", 4)
    read = read_logs([str(tmp_path / "trace")], tmp_path / "home")
    run = read_run(read.path)
    seen = digest(run)
    assert [site.ranks for site in seen.sites] == [(0, 1, 2, 3)] * 3
    assert {(site.line, site.gb_id) for site in seen.sites} == {
        (15, "GB0170"), (17, "GB0059"), (25, "GB0124"),
    }  # fmt: skip
    assert sorted(process.rank for process in seen.processes) == [0, 1, 2, 3]
    assert len({event.id for event in run.events}) == len(run.events)
    assert not seen.cut_short
    # What all ranks have is kept once.
    rank_files(tmp_path / "one", 1)
    one = read_logs([str(tmp_path / "one")], tmp_path / "home", target=tmp_path / "alone")
    sizes = [
        sum(path.stat().st_size for path in (each.path / "artifacts").iterdir())
        for each in (one, read)
    ]
    assert sizes[1] < 1.5 * sizes[0]


def test_processes_give_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = rank_files(tmp_path / "trace", 3)
    alone = read_run(read_logs(names, tmp_path / "home", target=tmp_path / "alone").path)
    monkeypatch.setattr(reader, "_FEW_BYTES", 0)
    monkeypatch.setattr(reader.os, "cpu_count", lambda: 2)
    read = read_logs(names, tmp_path / "home", target=tmp_path / "several")
    several = read_run(read.path)
    assert [one.source for one in read.sources] == names
    assert len(list((read.path / "artifacts").iterdir())) == 1

    def bodies_of(run):  # type: ignore[no-untyped-def]
        return sorted(
            repr((event.rank, event.compile_id, event.body))
            for event in run.events
            if not isinstance(event.body, (bodies.LogRead, bodies.GraphBreak))
        )

    assert bodies_of(several) == bodies_of(alone)
    for event, body in several.of(bodies.GraphCaptured):
        assert several.artifacts.get(body.text or ""), event.id


def test_two_machines_with_the_same_process_id(tmp_path: Path) -> None:
    for host in ("a", "b"):
        (tmp_path / host).mkdir()
        (tmp_path / host / "dedicated_log_torch_trace_x.log").write_bytes(golden("eager"))
    read = read_logs([str(tmp_path / "a"), str(tmp_path / "b")], tmp_path / "home")
    run = read_run(read.path)
    assert len({event.id for event in run.events}) == len(run.events)
    assert digest(run).graphs == 2 * digest(_alone(tmp_path)).graphs


def _alone(tmp_path: Path):  # type: ignore[no-untyped-def]
    return read_run(read_logs([str(tmp_path / "a")], tmp_path / "other").path)


def test_console_text_and_trace_in_one_file(tmp_path: Path) -> None:
    log = tmp_path / "mixed.log"
    log.write_bytes(b"epoch 1\n" + golden("eager") + b"epoch 2\n")
    read = read_logs([str(log)], tmp_path / "home")
    (one,) = read.sources
    assert "torch_trace" in one.formats
    assert one.unread == 0
    assert digest(read_run(read.path)).graphs == 8


def test_gzip(tmp_path: Path) -> None:
    log = tmp_path / "trace.log.gz"
    log.write_bytes(gzip.compress(golden("eager")))
    read = read_logs([str(log)], tmp_path / "home")
    assert digest(read_run(read.path)).graphs == 8


def test_a_log_of_nothing(tmp_path: Path) -> None:
    read = read_logs([_written(tmp_path, b"step 1\nstep 2\n")], tmp_path / "home")
    assert digest(read_run(read.path)).graphs == 0


@pytest.mark.parametrize(
    ("data", "words"), [(b"", "is empty"), (bytes(range(128, 256)) * 99, "is not a text log")]
)
def test_what_is_no_log_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        read_logs([_written(tmp_path, data)], tmp_path / "home")
    assert os.listdir(tmp_path / "home") == [".gitignore"]


def _written(folder: Path, data: bytes) -> str:
    (folder / "model.log").write_bytes(data)
    return str(folder / "model.log")


def test_the_place_must_be_free(tmp_path: Path) -> None:
    log = str(GOLDEN / "torch_trace_eager.log.xz")
    read_logs([log], tmp_path, target=tmp_path / "run")
    with pytest.raises(ToolError, match="already exists"):
        read_logs([log], tmp_path, target=tmp_path / "run")


def test_nothing_is_left_where_reading_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reader, "log_read", stop)
    with pytest.raises(KeyboardInterrupt):
        read_logs([str(GOLDEN / "torch_trace_eager.log.xz")], tmp_path / "home")
    assert os.listdir(tmp_path / "home") == [".gitignore"]


def test_sources_are_kept_where_the_same_lines_lie_here(tmp_path: Path) -> None:
    program = tmp_path / "model.py"
    shutil.copy(GOLDEN / "model.py", program)
    data = golden("eager").replace(b"/home/ada/project", str(tmp_path).encode())
    (tmp_path / "trace.log").write_bytes(data)
    same = read_run(read_logs([str(tmp_path / "trace.log")], tmp_path / "home").path)
    assert same.source_of(str(program)) == program.read_text()


def test_sources_of_another_program_are_not(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("# another program\n" * 60)
    data = golden("eager").replace(b"/home/ada/project", str(tmp_path).encode())
    (tmp_path / "trace.log").write_bytes(data)
    other = read_run(read_logs([str(tmp_path / "trace.log")], tmp_path / "home").path)
    assert other.source_of(str(tmp_path / "model.py")) is None


def test_a_log_that_names_devices_is_not_followed_there(tmp_path: Path) -> None:
    stack = {"stack": [{"line": 8, "name": "f", "filename": "/dev/zero", "loc": "x = 1"}] * 2}
    graph = "class GraphModule(torch.nn.Module):\n    pass"
    log = tmp_path / "trace.log"
    log.write_bytes(record("dynamo_start", stack) + record("dynamo_output_graph", {}, graph))
    read = read_logs([str(log)], tmp_path / "home")
    assert digest(read_run(read.path)).graphs == 1
