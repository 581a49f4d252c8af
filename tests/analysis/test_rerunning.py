"""The command that would write a fuller log."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import event, run_of
from compilescope.knowledge.analysis.logged.verdict import RELEASE, LogVerdict, judge_log
from compilescope.logs.reader import read_logs
from compilescope.logs.text.engine import command_in
from compilescope.record.logged import LogRead
from compilescope.record.run import read_run
from logs.consoles import GOLDEN
from logs.xla_blocks import IN_SYNC, MAIN, SYNC, graph


def verdict(folder: Path, text: str, name: str = "job 7.log") -> LogVerdict:
    log = folder / name
    log.write_text(text)
    found = judge_log(read_run(read_logs([str(log)], folder / "runs").path))
    assert found is not None
    return found


def test_a_release_build(tmp_path: Path) -> None:
    log = str(GOLDEN / "ttlike.c03_dataif.head.release.log.xz")
    found = judge_log(read_run(read_logs([log], tmp_path).path))
    assert found is not None and RELEASE in found.notes
    assert found.prepare == (
        "source venv/activate  # in your tt-xla checkout",
        "cmake -G Ninja -B build -DCMAKE_BUILD_TYPE=Debug",
        "cmake --build build",
    )
    assert found.rerun == (
        "TORCH_LOGS=+dynamo,recompiles TTXLA_LOGGER_LEVEL=DEBUG XLA_HLO_DEBUG=1 "
        "TTMLIR_RUNTIME_LOGGER_LEVEL=DEBUG PT_XLA_DEBUG_LEVEL=2 "
        "python /home/user/models/c03_dataif.py "
        "2>&1 | tee ttlike.c03_dataif.head.release.log"
    )


def test_a_debug_build_needs_none(tmp_path: Path) -> None:
    log = str(GOLDEN / "ttlike.c00_clean.head.log.xz")
    found = judge_log(read_run(read_logs([log], tmp_path).path))
    assert found is not None
    assert (found.build, found.notes, found.rerun, found.prepare) == ("debug", (), "", ())


_TORCH = ("TORCH_LOGS=+dynamo,recompiles",)
_XLA = ("PT_XLA_DEBUG_LEVEL=2", "PT_XLA_DEBUG=1", "XLA_HLO_DEBUG=1")
_TT = (
    "TTXLA_LOGGER_LEVEL=DEBUG",
    "TTMLIR_RUNTIME_LOGGER_LEVEL=DEBUG",
    "XLA_HLO_DEBUG=1",
    "PT_XLA_DEBUG_LEVEL=2",
)


@pytest.mark.parametrize(
    ("formats", "wanted"),
    [
        (("torch-logs",), _TORCH),
        (("torch-xla",), _TORCH + _XLA),
        (("torch-logs", "torch-xla"), _TORCH + _XLA),
        (("tt-xla",), _TORCH + _TT),
        (("torch-logs", "tt-xla"), _TORCH + _TT),
        (("torch-xla", "tt-xla"), _TORCH + _TT),
        ((), (*_TORCH, *_XLA, *_TT)),
    ],
    ids=["torch", "xla", "torch and xla", "tt", "torch and tt", "xla and tt", "nothing"],
)
def test_the_command_asks_for_all_that_its_compiler_knows(
    formats: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    body = LogRead("a.log", formats=formats, cut_tail=True)
    found = judge_log(run_of(event(body, number=1)))
    assert found is not None
    said = found.rerun.partition(" python ")[0].split()
    assert sorted(said) == sorted(dict.fromkeys(wanted))


def test_what_the_command_asked_for_beyond_that_stays(tmp_path: Path) -> None:
    command = "TTMLIR_RUNTIME_LOGGER_LEVEL=Trace TTXLA_LOGGER_LEVEL=INFO python train.py"
    body = LogRead("a.log", formats=("tt-xla",), cut_tail=True, command=command)
    found = judge_log(run_of(event(body, number=1)))
    assert found is not None
    assert "TTMLIR_RUNTIME_LOGGER_LEVEL=Trace" in found.rerun
    assert "TTXLA_LOGGER_LEVEL=DEBUG" in found.rerun and "INFO" not in found.rerun


def test_what_the_log_shows_of_the_program(tmp_path: Path) -> None:
    text = "+ CUDA=0 TORCH_LOGS=guards python -u train.py --lr 1e-3 > train.out 2>&1\n"
    found = verdict(tmp_path, text + graph(SYNC, IN_SYNC, "main (/srv/train.py:9)", MAIN))
    assert found.rerun == (
        "TORCH_LOGS=+dynamo,recompiles PT_XLA_DEBUG_LEVEL=2 PT_XLA_DEBUG=1 XLA_HLO_DEBUG=1 "
        "CUDA=0 python -u train.py --lr 1e-3 2>&1 | tee 'job 7.log'"
    )
    assert found.prepare == ("source /opt/env/bin/activate",)


def test_settings_that_were_on_stay_on(tmp_path: Path) -> None:
    stamp = "V1115 00:19:43.591000 6949 torch/_dynamo/guards.py:51] [0/0] [__guards] x\n"
    found = verdict(tmp_path, stamp, "a.log")
    assert found.rerun.startswith("TORCH_LOGS=+dynamo,recompiles,guards ")


def test_under_pytest(tmp_path: Path) -> None:
    frames = ("test_mlp (/srv/tests/test_m.py:9)", "<module> (/opt/env/bin/pytest:8)")
    found = verdict(tmp_path, graph(SYNC, IN_SYNC, *frames))
    assert " pytest /srv/tests/test_m.py 2>&1 | tee " in found.rerun


@pytest.mark.parametrize(
    ("head", "command"),
    [
        ("$ python a.py -x 1\n", "python a.py -x 1"),
        ("me@host:~/p$ TTXLA_LOGGER_LEVEL=DEBUG pytest -svv t.py 2>&1 | tee l\n", None),
        ("(venv) me@host:~/p$ torchrun --nproc-per-node 2 a.py\n", None),
        ("loss > python is 3\nprice $ 5\n", ""),
        ("", ""),
    ],
)
def test_the_command_in_a_log(head: str, command: str | None) -> None:
    expected = head.partition("$ ")[2].partition(" 2>")[0].strip() if command is None else command
    assert command_in(head.encode()) == expected
