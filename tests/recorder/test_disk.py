"""No disk, no room, no permission: the program comes first, and the record says what it lacks."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilescope.record.bodies import GraphBreak, GraphCaptured
from compilescope.record.eventfile import EventFile
from compilescope.record.own_files import let_go, size_of
from compilescope.record.run import read_run
from recorder.harness import functions_of, latest_folder, run_both, run_captured, show

HELLO = ("-c", "print('the program ran')")


def test_event_file_on_a_full_device_counts_what_it_loses() -> None:
    file = EventFile(Path("/dev/full"))
    file.write(b"{}")
    file.write(b"{}")
    assert file.lost == 2
    file.close()
    file.close()
    assert file.lost == 2


def test_what_could_not_be_written_is_written_once_it_can(tmp_path: Path) -> None:
    file, name = EventFile.claim(tmp_path, 3)
    assert name == "3"
    path = tmp_path / "events-3.jsonl"
    path.rename(tmp_path / "aside")
    path.mkdir()
    file.write(b"first")
    file.write(b"second")
    assert file.lost == 2
    path.rmdir()
    (tmp_path / "aside").rename(path)
    file.write(b"third")
    assert (file.lost, path.read_bytes()) == (0, b"first\nsecond\nthird\n")


def test_a_line_with_more_to_follow_is_written_with_what_follows(tmp_path: Path) -> None:
    file, _ = EventFile.claim(tmp_path, 0)
    path = tmp_path / "events-0.jsonl"
    file.write(b"guards", more=True)
    assert path.read_bytes() == b""
    file.write(b"time")
    assert path.read_bytes() == b"guards\ntime\n"
    file.write(b"last", more=True)
    assert (file.lost, path.read_bytes()) == (0, b"guards\ntime\nlast\n"), "nothing followed"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_no_descriptor_is_held_between_writes(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    file, _ = EventFile.claim(tmp_path, 0)
    file.write(b"one")
    assert os.listdir("/proc/self/fd") == before


def test_a_descriptor_that_is_another_files_by_now_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "results.csv"
    file, _ = EventFile.claim(tmp_path, 0)
    opened = io.FileIO(str(tmp_path / "events-0.jsonl"), "ab")
    ours = os.stat(tmp_path / "events-0.jsonl")
    theirs = os.open(mine, os.O_WRONLY | os.O_CREAT)
    os.dup2(theirs, opened.fileno())  # As a program that closes all, and opens its own.
    with pytest.raises(OSError, match="another file"):
        size_of(opened, ours)
    let_go(opened, ours)
    os.write(opened.fileno(), b"still open")
    assert (mine.read_bytes(), file.lost) == (b"still open", 0)
    os.close(theirs)


LIMITED = """
import os, resource, signal, sys
from pathlib import Path
from compilescope.record.artifacts import DiskArtifacts
from compilescope.record.eventfile import EventFile
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
folder = Path(sys.argv[1])
file, _ = EventFile.claim(folder, 0)
sys.dont_write_bytecode = True  # Python would leave parts of files.
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 100))
for line in b"first", b"second", b"third":
    file.write(line)
print(file.lost, (folder / "events-0.jsonl").read_bytes())
try:
    DiskArtifacts(folder / "artifacts").put("a long text", "py")
except OSError as error:
    print(error.strerror, os.listdir(folder / "artifacts"))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
file.write(b"fourth")
print(file.lost, (folder / "events-0.jsonl").read_bytes())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limits on the size of files")
def test_a_limit_on_the_size_of_files_stops_us_and_not_the_program(tmp_path: Path) -> None:
    """Past the limit comes a signal, of which this program dies as any would."""
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "2 b'first\\n'",
        "File too large []",
        "0 b'first\\nsecond\\nthird\\nfourth\\n'",
    ]


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    file = EventFile(tmp_path / "absent" / "events-0.jsonl")
    for _ in range(10):
        file.write(b"x" * 1_000_000)
    assert file.lost == 10
    assert len(file._waiting) < 5_000_000


def test_second_process_of_a_rank_gets_a_file_of_its_own(tmp_path: Path) -> None:
    first, _ = EventFile.claim(tmp_path, 0)
    second, name = EventFile.claim(tmp_path, 0)
    assert name == f"0:{os.getpid()}"
    first.close()
    second.close()


def test_dir_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        assert_refused(home)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_dir_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert_refused(tmp_path)


def test_dir_on_a_read_only_file_system(tmp_path: Path) -> None:
    # Root may write where others may not, yet nobody may write here.
    assert_refused(Path("/proc/compilescope"))


def assert_refused(home: Path) -> None:
    ended = run_captured(home, *HELLO)
    assert (ended.status, ended.stdout) == (2, b"")
    sentence, _, hint = ended.stderr.decode().partition("\n")
    assert sentence.startswith("compilescope: error: Cannot write the run under ")
    assert sentence.endswith(".")
    assert hint.strip().count("\n") == 0
    assert "Traceback" not in hint


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.torch
def test_disk_that_fills_up(small_disk: Path) -> None:
    plain, captured = run_both(small_disk, "steady.py", stdin=b"")
    assert (captured.status, captured.stdout) == (plain.status, plain.stdout)
    assert captured.stderr.startswith(plain.stderr)
    # We may add that the record could not be finished, and nothing else.
    assert captured.stderr.count(b"\n") - plain.stderr.count(b"\n") <= 2
    seen = show(small_disk)
    assert seen["cut_short"], seen
    assert seen["events"] > 0


@pytest.mark.slow
@pytest.mark.torch
def test_summary_on_a_full_disk_does_not_call_the_program_alive(small_disk: Path) -> None:
    code = "import torch; torch.compile(torch.sin, backend='eager')(torch.ones(2))"
    (small_disk / "ballast").write_bytes(b"x" * (48 - 12) * 1024)
    ended = run_captured(small_disk, "-c", code)
    assert ended.status == 0
    assert b"could not be written" in ended.stderr
    # The header on disk has no end, but we saw the program end.
    assert b"running" not in ended.stderr.lower()
    # No room for the graph's text is no reason to deny the graph.
    assert b"never called a compiled function" not in ended.stderr


def test_disk_that_is_full_from_the_start(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * (48 - 8) * 1024)
    ended = run_captured(small_disk, "-q", "-c", "print('done')")
    assert (ended.status, ended.stdout) == (0, b"done\n")


@pytest.mark.torch
def test_what_a_full_disk_had_no_room_for_is_missing(small_disk: Path) -> None:
    torch = pytest.importorskip("torch")
    import compilescope

    torch._dynamo.reset()
    with compilescope.capture(dir=small_disk):
        with contextlib.suppress(OSError):
            (small_disk / "ballast").write_bytes(b"x" * 48 * 1024)
        assert torch.compile(torch.sin, backend="eager")(torch.zeros(2)).tolist() == [0.0, 0.0]
    torch._dynamo.reset()
    assert show(small_disk)["cut_short"]


FORKED_AND_KILLED = """
import os, signal, torch

def backend(graph, inputs):
    os.kill(os.getpid(), signal.SIGKILL)

@torch.compile(backend=backend)
def step(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2

torch.compile(lambda x: x * 2 + 1, backend="eager")(torch.ones(2))
child = os.fork()
if not child:
    torch.compile(lambda x: x * 3 + 2, backend="eager")(torch.ones(2))
    os._exit(0)
os.waitpid(child, 0)
print(child, flush=True)
step(torch.ones(2))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The run of a program that forks, and is killed by a backend; the pid of its fork."""
    home = tmp_path_factory.mktemp("killed")
    # No GPU: Dynamo keeps the state of its random numbers, and CUDA does not work after a fork.
    around = {"CUDA_VISIBLE_DEVICES": ""}
    ended = run_captured(home, "-q", "-c", FORKED_AND_KILLED, env=around)
    assert ended.status == -signal.SIGKILL
    return latest_folder(home), int(ended.stdout)


@pytest.mark.torch
def test_a_break_is_on_disk_before_its_graph_reaches_the_backend(killed: tuple[Path, int]) -> None:
    run, child = read_run(killed[0]), killed[1]
    pids = [event.pid for event, _ in run.of(GraphBreak)]
    assert len(pids) == 1 and pids[0] != child
    # The graph up to the break, which the backend was just given.
    assert [pid != child for pid, _ in functions_of(run)] == [True, False, True]


@pytest.mark.torch
def test_a_killed_program_and_its_fork_leave_the_texts_of_their_graphs(
    killed: tuple[Path, int],
) -> None:
    folder, child = killed
    run = read_run(folder)
    texts: dict[bool, str] = {True: "", False: ""}
    for event, body in run.of(GraphCaptured):
        text = run.artifacts.get(body.text or "")
        assert text is not None and run.artifacts.get(body.graph or "") is not None
        texts[event.pid == child] += text
    assert "l_x_ * 3" in texts[True] and "l_x_ * 2" not in texts[True]
    assert "l_x_ * 2" in texts[False] and "l_x_ * 3" not in texts[False]
    files = list(folder.glob("events-*.jsonl"))
    assert [b'{"artifact":"' in path.read_bytes() for path in files] == [True, True]
