"""Reads damaged copies of real logs, each within limits of time and memory.

    python benchmarks/mutated_logs.py [--count 10000] [--seed 1] [--logs DIR] [--keep DIR]

The logs are those of the tests (tests/logs/golden) and all under `--logs` (.log, .xz, .gz): every
format that `compilescope logs` reads. Each copy is a piece of one of them with one to four damages:
bits flipped, lines cut, dropped, doubled, moved, joined or spliced from another log, a line or a
part of one repeated until it is long, other encodings, null bytes, CRLF, tabs, huge numbers, deep
nesting, two logs interleaved, prefixes and compile ids damaged, fields of JSON lines with other
types. It is read as a file, from stdin, compressed (and then damaged), or as one of several files
in a folder with links, pipes and folders among them. Forked children, one for some logs, run
`compilescope logs`, then commands that read the run that came of it; each 20th log's commands, and
all that go wrong, have a child each. Reported: tracebacks, exit statuses that are not
documented, signals, faults that the readers caught, and children above the limits (10 s of CPU,
300 MB over the parent). A seed and a number make the same log again (`--only NUMBER`). No torch
needed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from mutating import dump, mutate_bytes, mutate_json
from subjects.campaign import Campaign
from subjects.limited import Outcome, Task, rehearse, run_tasks, warm_up

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "logs" / "golden"
SIZES = (500, 2_000, 2_000, 8_000, 8_000, 20_000, 60_000)
LARGEST = 1_000_000
PUMPED = (200, 5_000, 5_000, 60_000, 300_000)
_PREFIX = re.compile(rb"(?m)^[VIWEC]\d{4} [\d:.]+ +\d+ [^\]\n]{1,80}\]")
_COMPILE_ID = re.compile(rb"\b\d{1,4}/\d{1,4}(?:_\d+)?\b")
_ODD_IDS = (b"0/0", b"0/0_1", b"9/9", b"!0/0", b"-1/2", b"1/", b"/", b"99999999999999999999/1")
_BATCH = 20
_NUMBER = re.compile(rb"\d+")
_ODD_NUMBERS = (b"9" * 20, b"9" * 5000, b"-1", b"0", b"1e999", b"18446744073709551616", b"NaN")
_ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\x1b[31m",
    b"\x1b]0;",
    b"\r",
    b"\x80",
    b"\xed\xa0\x80",
    b"\xe2\x80\xae",
)
_OPENERS = (b"(", b"[", b"{", b'{"a":', b"| ", b"\t", b"((lambda ", b"-", b"not ", b"f(")


@cache
def corpus(folder: Path | None) -> tuple[bytes, ...]:
    paths = sorted(GOLDEN.rglob("*.xz"))
    if folder is not None:
        paths += [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = dict.fromkeys(_unpacked(path) for path in paths)
    return tuple(data for data in found if data)


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    return gzip.decompress(data) if path.suffix == ".gz" else data


class Damager:
    """Damages logs, always the same for the same seed."""

    def __init__(self, rng: random.Random, logs: tuple[bytes, ...]) -> None:
        self.rng = rng
        self._logs = logs

    def log(self) -> bytes:
        data = self.piece()
        for _ in range(self.rng.choice((1, 1, 2, 3, 4))):
            data = self.rng.choice(DAMAGES)(self, data)[:LARGEST]
        return data

    def piece(self) -> bytes:
        """A part of a log that begins and ends with a line; sometimes its beginning."""
        data = self.rng.choice(self._logs)
        size = self.rng.choice(SIZES)
        start = self.rng.choice((0, self.rng.randrange(len(data))))
        start = data.rfind(b"\n", 0, start) + 1
        return data[start : start + size]

    def place(self, data: bytes) -> int:
        return self.rng.randrange(len(data) + 1)

    def lines(self, data: bytes) -> list[bytes]:
        return data.split(b"\n")


def flip(damager: Damager, data: bytes) -> bytes:
    changed = bytearray(data or b"x")
    for _ in range(damager.rng.choice((1, 10, 300))):
        changed[damager.rng.randrange(len(changed))] ^= 1 << damager.rng.randrange(8)
    return bytes(changed)


def cut(damager: Damager, data: bytes) -> bytes:
    first, second = sorted((damager.place(data), damager.place(data)))
    return damager.rng.choice((data[:second], data[first:], data[:first] + data[second:]))


def double(damager: Damager, data: bytes) -> bytes:
    lines = damager.lines(data)
    at = damager.rng.randrange(len(lines))
    some = lines[at : at + damager.rng.choice((1, 5, 100))]
    return b"\n".join(lines[:at] + some * damager.rng.choice((2, 20, 500)) + lines[at:])


def reorder(damager: Damager, data: bytes) -> bytes:
    lines = damager.lines(data)
    if damager.rng.random() < 0.3:
        damager.rng.shuffle(lines)
    for _ in range(damager.rng.choice((1, 20))):
        lines.insert(
            damager.rng.randrange(len(lines)), lines.pop(damager.rng.randrange(len(lines)))
        )
    return b"\n".join(lines)


def thin(damager: Damager, data: bytes) -> bytes:
    keep = damager.rng.choice((0.2, 0.8, 0.98))
    return b"\n".join(line for line in damager.lines(data) if damager.rng.random() < keep)


def splice(damager: Damager, data: bytes) -> bytes:
    at = damager.place(data)
    return data[:at] + damager.piece() + data[at:]


def interleave(damager: Damager, data: bytes) -> bytes:
    mine, other = damager.lines(data), damager.lines(damager.piece())
    found: list[bytes] = []
    while mine or other:
        source = mine if mine and (not other or damager.rng.random() < 0.5) else other
        count = damager.rng.choice((1, 1, 3, 10))
        found += source[:count]
        del source[:count]
    return b"\n".join(found)


def pump(damager: Damager, data: bytes) -> bytes:
    """A part of a line, repeated within the line."""
    lines = damager.lines(data)
    at = damager.rng.randrange(len(lines))
    line = lines[at] or b" "
    start = damager.rng.randrange(len(line))
    part = line[start : start + damager.rng.choice((1, 2, 8, 40, 4000))]
    many = part * (damager.rng.choice(PUMPED) // len(part) + 1)
    lines[at] = line[:start] + many + line[start:]
    return b"\n".join(lines)


def nest(damager: Damager, data: bytes) -> bytes:
    at = damager.place(data)
    opener = damager.rng.choice(_OPENERS)
    return data[:at] + opener * (damager.rng.choice(PUMPED) // len(opener)) + data[at:]


def renumber(damager: Damager, data: bytes) -> bytes:
    chance = damager.rng.choice((0.001, 0.02))

    def other(found: re.Match[bytes]) -> bytes:
        return damager.rng.choice(_ODD_NUMBERS) if damager.rng.random() < chance else found[0]

    return _NUMBER.sub(other, data)


def salt(damager: Damager, data: bytes) -> bytes:
    for _ in range(damager.rng.choice((1, 30))):
        at = damager.place(data)
        data = data[:at] + damager.rng.choice(_ODD_BYTES) + data[at:]
    return data


def encode(damager: Damager, data: bytes) -> bytes:
    way = damager.rng.randrange(5)
    if way == 0:
        return data.decode("utf-8", "replace").encode("utf-16")
    if way == 1:
        return b"\xef\xbb\xbf" + data
    if way == 2:
        return data.replace(b"\n", b"\r\n")
    if way == 3:
        return data.replace(b"\n", b"\r")
    return data.decode("latin-1").encode("utf-8")


def prefix(damager: Damager, data: bytes) -> bytes:
    """Something before each line, as a collector puts it there; or less of each."""
    if damager.rng.random() < 0.3:
        count = damager.rng.randrange(40)
        return b"\n".join(line[count:] for line in damager.lines(data))
    before = damager.rng.choice(
        (b"[rank0]: ", b"(Worker pid=12) ", b"0: ", b"2026-01-01T00:00:00Z ", b"\t", b"| ")
    )
    return b"\n".join(before + line for line in damager.lines(data))


def join(damager: Damager, data: bytes) -> bytes:
    """Newlines lost."""
    chance = damager.rng.choice((0.02, 0.5, 1.0))
    lines = damager.lines(data)
    return b"".join(line + (b"" if damager.rng.random() < chance else b"\n") for line in lines)


def line_prefix(damager: Damager, data: bytes) -> bytes:
    """What a logger writes before a message, damaged in some lines."""
    chance = damager.rng.choice((0.05, 1.0))

    def other(found: re.Match[bytes]) -> bytes:
        if damager.rng.random() > chance:
            return found[0]
        text = found[0]
        at = damager.rng.randrange(len(text))
        odd = (b"", b"[", b"]", b" ", b"V9999 ", b"\t", text[:at], text[at:], b"[0/0] [0/1] ")
        return damager.rng.choice(odd)

    return _PREFIX.sub(other, data)


def compile_ids(damager: Damager, data: bytes) -> bytes:
    """Frames and attempts trade places."""
    known = list(dict.fromkeys(_COMPILE_ID.findall(data)))[:50]
    pool = [*known, *_ODD_IDS]
    chance = damager.rng.choice((0.02, 0.5))

    def other(found: re.Match[bytes]) -> bytes:
        return damager.rng.choice(pool) if damager.rng.random() < chance else found[0]

    return _COMPILE_ID.sub(other, data)


def payload(damager: Damager, data: bytes) -> bytes:
    """Fields of JSON lines, such as those of TORCH_TRACE: other types, other values, none."""
    lines = damager.lines(data)
    places = [at for at, line in enumerate(lines) if b"{" in line and line.rstrip().endswith(b"}")]
    for at in damager.rng.sample(places, min(len(places), damager.rng.choice((1, 5, 40)))):
        before, brace, rest = lines[at].partition(b"{")
        try:
            value = json.loads(brace + rest)
        except (ValueError, RecursionError):
            continue
        with suppress(RecursionError):  # What an earlier damage made is too deep for this one.
            lines[at] = before + dump(mutate_json(value, damager.rng), damager.rng)
    return b"\n".join(lines)


def many_ranks(damager: Damager, data: bytes) -> bytes:
    """Lines of several processes in one file."""
    names = damager.rng.choice(((0, 1), (0, 1, 2, 3), (7, -1, 10**30), (0, 0, 99999)))
    form = damager.rng.choice((b"[rank%d]:", b"[rank%d]", b"[%d]: ", b"(%d) "))
    lines = damager.lines(data)
    return b"\n".join(form % damager.rng.choice(names) + line for line in lines)


def torn(damager: Damager, data: bytes) -> bytes:
    """Cut within a character."""
    at = damager.place(data)
    return data[:at] + "é…\U0001f600".encode()[: damager.rng.randrange(1, 9)] + data[at:]


DAMAGES: tuple[Callable[[Damager, bytes], bytes], ...] = (
    flip,
    cut,
    double,
    reorder,
    thin,
    splice,
    interleave,
    pump,
    pump,
    nest,
    renumber,
    salt,
    encode,
    prefix,
    join,
    line_prefix,
    line_prefix,
    compile_ids,
    compile_ids,
    payload,
    payload,
    payload,
    many_ranks,
    torn,
)


def make(seed: int, number: int, logs: tuple[bytes, ...]) -> tuple[bytes, random.Random]:
    damager = Damager(random.Random(f"{seed}/{number}"), logs)
    return damager.log(), damager.rng


READING: tuple[list[str], ...] = (
    ["show", "run", "--all"],
    ["show", "run", "--json"],
    ["-vv", "explain", "run", "--all"],
    ["report", "run", "-o", "page.html"],
    ["report", "run", "-o", "page.html"],
    ["report", "run", "-o", "page.md"],
    ["report", "run", "-o", "page.sarif"],
    ["report", "run", "--format", "trace", "-o", "page.trace"],
    ["export", "run", "--redact", "-o", "run.zip"],
    ["check", "--run", "run", "--no-baseline"],
    ["compare", "run", "run"],
)
MODEL = b"import torch\n\n\ndef forward(x):\n    return x.item()\n"


def lay_out(data: bytes, rng: random.Random, place: Path) -> tuple[list[str], Path | None]:
    """How it comes to the command: its words, and what stands in stdin."""
    way = rng.randrange(10)
    more = rng.choice(([], ["--json"], ["--all"], ["--source", "src"]))
    (place / "src").mkdir()
    (place / "src" / "model.py").write_bytes(mutate_bytes(MODEL, rng))
    if way == 0:
        (place / "stdin").write_bytes(data)
        return ["logs", "-", *more], place / "stdin"
    if way in (1, 2):
        pack, suffix = rng.choice(((gzip.compress, "gz"), (lzma.compress, "xz")))
        packed = pack(data)
        if rng.random() < 0.5:
            packed = mutate_bytes(packed, rng)
        name = rng.choice((f"some.log.{suffix}", "some.log"))
        (place / name).write_bytes(packed)
        return ["logs", name, *more], None
    if way == 3:
        (place / "some").mkdir()
        _fill(place / "some", data, rng)
        return ["logs", "some", *more], None
    (place / "some.log").write_bytes(data)
    return ["logs", "some.log", *more], None


def _fill(folder: Path, data: bytes, rng: random.Random) -> None:
    """A folder of ranks, as TORCH_TRACE leaves it, and what should not be there."""
    middle = data.find(b"\n", len(data) // 2) + 1
    (folder / "dedicated_log_torch_trace_rank_0_x.log").write_bytes(data[:middle])
    (folder / "dedicated_log_torch_trace_rank_1_x.log").write_bytes(data[middle:])
    odd = rng.randrange(6)
    if odd == 0:
        os.mkfifo(folder / "pipe.log")
    elif odd == 1:
        (folder / "loop.log").symlink_to("loop.log")
        (folder / "up").symlink_to("..")
    elif odd == 2:
        (folder / "zero.log").symlink_to("/dev/zero")
    elif odd == 3:
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff\n.log")).write_bytes(data[:500])
    elif odd == 4:
        (folder / "deep.log").mkdir()


class Trial:
    """Damaged logs, some at a time, and the commands that read them."""

    def __init__(
        self, asked: argparse.Namespace, scratch: Path, logs: tuple[bytes, ...], campaign: Campaign
    ) -> None:
        self._asked = asked
        self._scratch = scratch / "work"
        self._logs = logs
        self._campaign = campaign

    def go(self, numbers: Sequence[int]) -> None:
        tasks = [(number, task) for number in numbers for task in self._tasks(number)]
        # The first log's commands have a process each, as those of a shell.
        first = [pair for pair in tasks if pair[0] == numbers[0]]
        rest = tasks[len(first) :]
        outcomes = [task.alone() if task.is_possible else None for _, task in first]
        outcomes += run_tasks([task for _, task in rest])
        for (number, task), outcome in zip(tasks, outcomes, strict=True):
            if outcome is not None:
                self._note(number, task, outcome)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _tasks(self, number: int) -> Iterator[Task]:
        data, rng = make(self._asked.seed, number, self._logs)
        place = self._scratch / str(number)
        place.mkdir(parents=True)
        words, stdin = lay_out(data, rng, place)
        encoding = rng.choice(("utf-8",) * 6 + ("ascii", "latin-1"))
        yield Task([*words, "-o", "run"], place, encoding=encoding, stdin=stdin)
        for each in rng.sample(READING, self._asked.commands):
            yield Task(each, place, encoding=encoding, needs=place / "run")

    def _note(self, number: int, task: Task, outcome: Outcome) -> None:
        allowed = (0, 1, 2) if task.words[0] == "check" else (0, 2)
        again = (
            f"python benchmarks/mutated_logs.py --seed {self._asked.seed} --only {number}"
            f" --commands {self._asked.commands}"
        )
        if self._asked.logs is not None:
            again += f" --logs {self._asked.logs}"
        if self._campaign.note(number, " ".join(task.words), outcome, allowed, again):
            shutil.rmtree(task.folder / "run", ignore_errors=True)
            self._campaign.kept(f"log-{self._asked.seed}-{number}", task.folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="The first number.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=1, help="For each run that came of a log.")
    parser.add_argument("--only", type=int, help="This one, again.")
    parser.add_argument("--logs", type=Path, help="A folder with more logs.")
    parser.add_argument("--keep", type=Path, help="Where to save the logs that went wrong.")
    asked = parser.parse_args()
    os.environ["COMPILESCOPE_AUTO_RUN"] = "0"
    scratch = Path(tempfile.mkdtemp(prefix="mutated-"))
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = f"{scratch}/user"
    try:
        return _all(asked, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _all(asked: argparse.Namespace, scratch: Path) -> int:
    logs = corpus(asked.logs)
    warm = scratch / "warm"
    warm.mkdir()
    (warm / "some.log").write_bytes(min(logs, key=len))
    warm_up()
    rehearse([["logs", "some.log", "-o", "run"], *READING], warm, {})
    numbers = range(asked.first, asked.first + asked.count)
    if asked.only is not None:
        numbers = range(asked.only, asked.only + 1)
    campaign = Campaign("log", len(numbers), asked.keep)
    print(f"{len(logs)} logs as the beginning, seed {asked.seed}", flush=True)
    batches = [numbers[at : at + _BATCH] for at in range(0, len(numbers), _BATCH)]
    return campaign.go(batches, Trial(asked, scratch, logs, campaign).go)


if __name__ == "__main__":
    sys.exit(main())
