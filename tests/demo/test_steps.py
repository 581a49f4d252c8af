"""The steps of the tour: which there are, what each needs, and how one runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compilescope.apps.cli.commands.demo.output import exit_code, shown_lines
from compilescope.apps.cli.main import group
from compilescope.apps.demo.tour import (
    PROGRAMS,
    Command,
    CommandResult,
    StepResult,
    TourStep,
    all_steps,
    choose,
    make_folder,
    obstacle,
    run_step,
)
from compilescope.base.errors import ToolError
from gone import is_gone

COMMANDS = group.list_commands(None)  # type: ignore[arg-type]
STEPS = all_steps(COMMANDS)
WANTED = [
    *("capture", "explain", "fix", "report", "constraints", "graphs", "numbers", "minify"),
    *("bench", "gate", "registry", "logs"),
]


def step(*commands: Command, name: str = "mine", **fields: object) -> TourStep:
    given = {"programs": (), "modules": (), **fields}
    return TourStep(name, 1, name, "Shows something.", commands, **given)  # type: ignore[arg-type]


def taken(one: TourStep, folder: Path) -> StepResult:
    return run_step(one, folder, {}, heard=lambda words: None, ended=lambda ran: None)


def test_the_steps_in_order() -> None:
    assert [each.id for each in STEPS] == WANTED


def test_benchmarks_appear_with_their_command() -> None:
    without = [name for name in COMMANDS if name != "bench"]
    assert "bench" not in [each.id for each in all_steps(without)]
    names = [each.id for each in all_steps([*without, "bench"])]
    assert names.index("bench") == names.index("gate") - 1


@pytest.mark.parametrize("one", STEPS, ids=lambda one: one.id)
def test_a_step_is_whole(one: TourStep) -> None:
    assert one.title and one.text.endswith(".") and one.commands
    assert all((PROGRAMS / name).is_file() for name in one.programs)
    before = {each.id for each in STEPS if each.order < one.order}
    assert set(one.after) <= before
    for command in one.commands:
        assert command.words[0] in ("compilescope", "python")
    # What it reads is bundled, or made by itself or a step before it.
    made = {name for each in STEPS if each.id in one.after for name in each.makes}
    there = {*one.programs, *one.makes, *made}
    for command in one.commands:
        files = {word.partition(":")[0] for word in command.words if ".py" in word}
        assert files <= there, command.text


NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4}


@pytest.mark.parametrize("one", STEPS, ids=lambda one: one.id)
def test_a_number_in_a_text_is_one_that_its_commands_must_show(one: TourStep) -> None:
    """`one graph break` stands above a page that says so: the run would fail otherwise."""
    told = re.findall(r"\b(one|two|three|four) (graph break|recompile)s?\b", one.text)
    shown = {" ".join(text.split()) for command in one.commands for text in command.shows}
    for number, noun in told:
        assert f"{noun.capitalize()}s {NUMBERS[number]}" in shown
    assert told or one.id != "capture"


def test_one_step_brings_those_it_reads_from() -> None:
    assert [each.id for each in choose(STEPS, ("gate",))] == ["fix", "gate"]
    assert [each.id for each in choose(STEPS, ("logs", "explain"))] == [
        "capture",
        "explain",
        "logs",
    ]
    assert choose(STEPS, ()) == STEPS
    with pytest.raises(ToolError) as error:
        choose(STEPS, ("explian",))
    assert error.value.hint == "Did you mean explain?"


def test_a_command_can_be_copied() -> None:
    command = Command(("python", "a b.py"), environment=(("TORCH_TRACE", "a trace"),))
    assert command.text == "TORCH_TRACE='a trace' python 'a b.py'"


def test_a_step_that_can_not_run_says_why() -> None:
    absent = step(modules=("no_such_package",))
    result = obstacle(absent, [])
    assert result is not None
    assert (result.status, result.reason) == ("unavailable", "no_such_package is not installed")
    reading = step(name="reading", after=("mine",))
    below = obstacle(reading, [result])
    assert below is not None and below.status == "unavailable"
    skipped = obstacle(reading, [StepResult(absent, "skipped")])
    assert skipped is not None and skipped.status == "skipped" and "mine" in skipped.reason
    assert obstacle(reading, [StepResult(absent, "ok")]) is None


def test_the_exit_code() -> None:
    good, bad, absent = (StepResult(step(), status) for status in ("ok", "failed", "unavailable"))
    assert [exit_code(each) for each in ([good, absent], [good, bad], [absent], [])] == [0, 1, 1, 0]


def test_a_step_runs_and_its_output_is_kept(tmp_path: Path) -> None:
    command = Command(("compilescope", "registry", "show", "GB0170"), shows=("Data-dependent",))
    result = taken(step(command), tmp_path)
    assert (result.status, result.reason) == ("ok", "")
    assert "GB0170" in (tmp_path / "output" / "01-mine-1.txt").read_text()
    assert result.seconds > 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"expected": 3}, "exit status 0, expected 3"),
        ({"shows": ("no such words",)}, "its output does not contain 'no such words'"),
    ],
)
def test_a_step_that_does_something_else_fails(
    fields: dict[str, object], reason: str, tmp_path: Path
) -> None:
    command = Command(("python", "-c", "print('said')"), **fields)  # type: ignore[arg-type]
    never = Command(("python", "-c", "open('reached', 'w')"))
    result = taken(step(command, never), tmp_path)
    assert result.status == "failed" and result.reason.endswith(reason)
    assert len(result.ran) == 1 and not (tmp_path / "reached").exists()


def test_a_step_that_leaves_nothing_fails(tmp_path: Path) -> None:
    result = taken(step(Command(("python", "-c", "pass")), makes=("page.html",)), tmp_path)
    assert (result.status, result.reason) == ("failed", "it did not write page.html")


def test_words_are_found_across_lines_and_colors() -> None:
    command = Command(("python",), shows=("at most 0 allowed",))
    assert CommandResult(command, 0, 1.0, "1, at most\n  \x1b[1m0\x1b[0m allowed").problem == ""


def test_progress_is_heard_and_not_shown(tmp_path: Path) -> None:
    heard: list[str] = []
    code = "print('compilescope: fix: 2 of 3: timing, 1 min 0 s'); print('the answer')"
    one = step(Command(("python", "-c", code)))
    result = run_step(one, tmp_path, {}, heard=heard.append, ended=lambda ran: None)
    assert result.ran[0].output == "the answer\n"
    assert heard[-1] == "2 of 3: timing"


def test_no_setting_of_ours_reaches_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPILESCOPE_DIR", "/elsewhere")
    monkeypatch.setenv("TORCH_LOGS", "+dynamo")
    ours = "k[:6] == 'COMPIL' or k in ('TORCH_LOGS', 'TORCH_TRACE')"
    code = f"import os; print(sorted(k for k in os.environ if {ours}))"
    output = taken(step(Command(("python", "-c", code))), tmp_path).ran[0].output
    # The one that keeps the tour's own programs from leaving runs.
    assert output == "['COMPILESCOPE_AUTO_RUN']\n"


def test_a_command_that_is_stopped_ends(tmp_path: Path) -> None:
    """With what it started."""
    child = "import time; time.sleep(600)"
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "print(f'compilescope: fix: {child.pid}, 0 s', flush=True)\n"
        "time.sleep(600)"
    )
    pids: list[int] = []

    def stop(words: str) -> None:
        if words.isdigit():
            pids.append(int(words))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_step(
            step(Command(("python", "-c", code))),
            tmp_path,
            {},
            heard=stop,
            ended=lambda ran: None,
        )
    assert pids and is_gone(pids[0])


def test_long_output_is_trimmed() -> None:
    text = "".join(f"line {number}\n" for number in range(10))
    command = Command(("python",), since="line 3", lines=4)
    shown, left = shown_lines(CommandResult(command, 0, 1.0, text))
    assert (shown, left) == (["line 3", "line 4", "line 5", "line 6"], 6)


def test_the_folder_is_new_or_empty(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    (tmp_path / "model.py").write_text("mine = True\n")
    with pytest.raises(ToolError, match="is not empty"):
        make_folder(tmp_path)
    with pytest.raises(ToolError, match="Cannot use"):
        make_folder(tmp_path / "model.py" / "below")
    assert (tmp_path / "model.py").read_text() == "mine = True\n"
