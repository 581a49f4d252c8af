"""The commands that the pages show are run, each page in a folder with the files it speaks of.

Commands that read a recorded run, a log or a table are run in the default suite, in this process,
on one run of examples/tour.py, which is the README's; those that start a program are slow. What is
not run says why, on its page.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import compilescope
import samples
from commands import called
from compilescope.apps.cli.main import group
from docs_pages import README, ROOT, CommandBlock, command_blocks, page_text, pages, shown_files

WORLD = ROOT / "tests" / "programs" / "documented"
LOGS = ROOT / "tests" / "logs" / "golden"
MODELS = ROOT / "src" / "compilescope" / "scale" / "sweep" / "programs" / "transformers_model.py"
BIN = str(Path(sys.executable).parent)
BLOCKS = [block for path in pages() for block in command_blocks(path)]
READERS = {
    "show", "explain", "report", "runs", "compare", "devices", "logs",
    "agent-skill",
}  # fmt: skip
"""Commands that start no program of the user's."""
LISTS = {"learn", "fix --list", "tune --list", "demo --list", "runs clean --keep 5"}
_ID = re.compile(r"(?<![\w.-])(?=[0-9a-f]*\d)[0-9a-f]{3,4}(?![\w.-])")
"""A run by the start of its id, as the pages name one."""
_ROLES = ("AUTHOR", "COMMITTER")
_FAULT = re.compile(r"^Usage:|No such (?:option|command)", re.M)
_OURS = str(Path(compilescope.__file__).parent)


def test_what_is_not_run_says_why() -> None:
    reasons = [block for block in BLOCKS if block.not_run is not None]
    assert all(len((block.not_run or "").split()) > 2 for block in reasons), reasons
    for block in reasons:
        for named in re.findall(r"tests/[\w/]+(?:\.py)?", block.not_run or ""):
            assert (ROOT / named).exists(), f"{block}: {named}"
    # Most of what the pages show is run.
    assert len(reasons) < len(BLOCKS) * 0.4


def test_what_other_tests_run_they_run() -> None:
    """They read the page, or have its options. What follows may be a command's output."""
    others = [block for block in BLOCKS if block.run_by is not None]
    assert others
    for block in others:
        text = (ROOT / (block.run_by or "")).read_text(encoding="utf-8")
        options = [word for word in block.commands[0].split() if word.startswith("--")]
        reads = f'page_text("{block.page.stem}")' in text
        assert reads or all(f'"{option}"' in text for option in options), block


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_its_options_exist(block: CommandBlock) -> None:
    for line in block.commands:
        words = shlex.split(line, comments=True)
        if "compilescope" not in words[:3] or words[0] == "podman":
            continue
        command, rest = _command(words[words.index("compilescope") + 1 :])
        known = {
            name for option in command.params for name in (*option.opts, *option.secondary_opts)
        }
        for word in rest:
            if word.endswith(".py") or word == "--torchrun":
                break  # What follows may be the program's, or torchrun's.
            if word.startswith("--") and len(word) > 2:
                assert word.partition("=")[0] in {*known, "--help"}, f"{block}: {line}: {word}"


def _command(words: list[str]) -> tuple[click.Command, list[str]]:
    found: click.Command = group
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(found)
        below = found.get_command(context, words[0])
        if below is None:
            break
        found, words = below, words[1:]
    return found, words


def is_quick(command: str) -> bool:
    words = shlex.split(command, comments=True)
    if words[:1] != ["compilescope"]:
        return words[:1] == ["cat"]
    line = " ".join(words[1:])
    if line.startswith("registry"):
        return not re.search("build|serve|--run", line)
    return (words[1] in READERS and "--job" not in words) or line in LISTS


def is_read(block: CommandBlock) -> bool:
    """All of it is quick: a command may need what the one before it left."""
    return block.runs_here and all(map(is_quick, block.commands))


QUICK = sorted({block.page for block in BLOCKS if is_read(block)})
SLOW = sorted({b.page for b in BLOCKS if b.runs_here and not is_read(b)})


class Stage:
    """A folder with what a page speaks of: programs, logs, runs."""

    def __init__(self, folder: Path, page: Path, run: Path) -> None:
        self.folder = folder
        self.runs = folder / ".compilescope"
        self.recorded_in: CommandBlock | None = None
        """The last block whose commands left a run."""
        self._latest = self.runs / run.name
        shutil.copytree(WORLD, folder, dirs_exist_ok=True)
        (folder / "crash.txt").rename(folder / "crash.log")
        (folder / "examples").mkdir()
        words = page.read_text(encoding="utf-8")
        for path in (ROOT / "examples").glob("*.py"):
            if path.stem in ("tour", "crash", "planted_bug") or f"examples/{path.name}" in words:
                shutil.copy(path, folder / "examples")
        shutil.copy(ROOT / "examples" / "tour.py", folder)
        self._copy("tests/fixes/programs/sum_gate.py")
        for file in MODELS.parent.glob("*.py"):
            shutil.copy(file, folder)
        for log in LOGS.rglob("*.xz"):
            shutil.copy(log, folder)
        log = LOGS / "console" / "xla_openxla.c02_item.log.xz"
        shutil.copy(log, folder / "model.log.xz")
        (folder / "model.log").write_bytes(lzma.decompress(log.read_bytes()))
        (folder / "models").mkdir()
        for name, text in shown_files(page).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        shutil.copytree(run, self.runs / run.name)

    def _copy(self, place: str) -> None:
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, target)

    def run(self, block: CommandBlock, command: str, *, here: bool = False) -> None:
        """`here`: in this process, which only a command without anything of the shell's can."""
        for named in _ID.findall(shlex.join(shlex.split(command, comments=True))):
            if f"{named}@1" in command:
                self._store_ranks(named)
            self._name_latest(named, block)
        before = self._recorded()
        done = self._called(command) if here else self._started(command)
        said = (
            f"{block}: {command}: {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        )
        assert done.returncode in block.statuses, said
        assert not _FAULT.search(done.stderr), said
        # A program may end with a traceback; nothing of ours is in it.
        assert not ("Traceback" in done.stderr and _OURS in done.stderr), said
        if new := self._recorded() - before:
            self.recorded_in, (self._latest, *_) = block, sorted(new)

    def _called(self, command: str) -> subprocess.CompletedProcess[str]:
        words = shlex.split(command, comments=True)
        if words[0] == "cat":
            return self._started(command)
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("COMPILESCOPE")]:
                patch.delenv(name)
            for name, value in self._environment().items():
                patch.setenv(name, value)
            return called(*words[1:], cwd=self.folder)

    def _started(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", _ended(command)],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def _recorded(self) -> set[Path]:
        return {path for path in self.runs.iterdir() if (path / "run.json").exists()}

    def _store_ranks(self, start: str) -> None:
        if not any(path.name.startswith(start) for path in self.runs.iterdir()):
            samples.store(samples.ranks_run(), self.runs, f"{start}00-ranks")

    def _name_latest(self, start: str, block: CommandBlock) -> None:
        """The pages name runs that a reader has; here the latest gets that name. What a block
        names after it has recorded a run is that run, whatever an earlier block called so."""
        runs = self._recorded()
        stand_ins = {path for path in runs if path.name.startswith(f"{start}00-")}
        if self.recorded_in is block:
            for path in stand_ins:
                shutil.rmtree(path)
            runs -= stand_ins
        if not any(path.name.startswith(start) for path in runs):
            label = self._latest.name.partition("-")[2]
            shutil.copytree(self._latest, self.runs / f"{start}00-{label}")

    def _environment(self) -> dict[str, str]:
        outer = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COMPILESCOPE"))
        }
        mine = {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder), "BROWSER": "true"}
        # For pages that keep something under git.
        who = {f"GIT_{role}_{what}": "me@here" for role in _ROLES for what in ("NAME", "EMAIL")}
        return {**outer, **mine, **who, "PATH": f"{BIN}:{outer['PATH']}"}


def _ended(command: str) -> str:
    """A server is ended as Ctrl-C ends it once it serves, and asks for no port of others."""
    server = re.match(r"compilescope (?:registry )?serve", command)
    if not server:
        return command
    words = re.sub(r"\s+#.*", "", command[server.end() :])
    # With job control, what runs beside the shell hears Ctrl-C.
    return f"""set -m
: > served.txt
{server[0]} --port 0{words} > served.txt 2>&1 &
until grep -q http: served.txt || ! kill -0 $!; do sleep 0.2; done
kill -INT $!; wait $!; status=$?; cat served.txt >&2; exit $status"""


class Session(NamedTuple):
    """The README's, with its run."""

    run: Path
    told: str


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    runs = tmp_path_factory.mktemp("tour")
    outer = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env = {**outer, "PATH": f"{BIN}:{outer['PATH']}", "COMPILESCOPE_DIR": str(runs)}
    (command,) = re.findall(r"^\$ (.+)$", README.read_text(encoding="utf-8"), re.M)
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=env, check=True, capture_output=True, text=True
    )
    (run,) = [path for path in runs.iterdir() if (path / "run.json").exists()]
    return Session(run, done.stderr)


@pytest.fixture(scope="module")
def tour(session: Session) -> Path:
    return session.run


@pytest.mark.torch
def test_the_readme_shows_what_its_session_prints(session: Session) -> None:
    everything = called("show", "--all", "--dir", session.run.parent)
    # Times, and so which cause stands first, differ from run to run; the words are what one sees.
    said = _timeless(session.told + everything.stdout)
    shown = re.findall(r"```text\n(.*?)```", README.read_text(encoding="utf-8"), re.S)[0]
    passing = re.compile(
        r"compilescope \w+-tour|█|\d recompiles, |^ +\d +tour.py|"
        r"^(?:and \d|Everything:|Start here| +whole diff:)"
    )
    for line in shown.splitlines():
        if line.strip() and not passing.search(line):
            assert _timeless(line) in said, line


def _timeless(text: str) -> str:
    """Without times, the version of torch, ranks, gaps and line breaks: which cause stands first,
    and so is wrapped otherwise, depends on times too."""
    text = re.sub(r"\d+(\.\d+)? m?s\b", "T", text)
    text = re.sub(r"torch \d+\.\d+\.\d+(\+\w+)?", "torch V", text)
    return " ".join(re.sub(r"^ +\d+ ", " ", text, flags=re.M).split())


@pytest.mark.torch
def test_the_python_snippet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", page_text("index"), re.S)
    monkeypatch.chdir(tmp_path)
    Path("snippet.py").write_text(snippet)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(tmp_path / "snippet.py"), run_name="__main__")
    assert printed.getvalue().startswith("GB0170 7\n")


@pytest.mark.torch
@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.stem)
def test_commands_that_read_run(page: Path, tour: Path, tmp_path: Path) -> None:
    stage = Stage(tmp_path, page, tour)
    for block in command_blocks(page):
        for command in block.commands if is_read(block) else ():
            stage.run(block, command, here=True)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", SLOW, ids=lambda page: page.stem)
def test_commands_run(page: Path, tour: Path, tmp_path: Path) -> None:
    stage = Stage(tmp_path, page, tour)
    for block in command_blocks(page):
        for command in block.commands if block.runs_here else ():
            stage.run(block, command)
