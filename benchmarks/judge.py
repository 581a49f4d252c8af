"""How far the judge can be trusted: mutants of real programs that it must not let through, and
rewrites that change nothing, which it must not reject.

    python benchmarks/judge.py --keep judged.jsonl               # all of it; hours on two cores
    python benchmarks/judge.py --limit 300 --per-subject 1       # a sample over many programs
    python benchmarks/judge.py --subjects 'zoo/programs/clean_*' --json
    python benchmarks/judge.py --keep judged.jsonl --only-table  # what is kept, without running

Each mutant (`judging/mutants.py`) differs from its program in one place. It is caught where
`verify` says that it is changed. What is let through was read by somebody: `judging/reviewed.json`
has each with a reason, by a hash of its whole text, and one that is there no more is an error. A
rewrite (`judging/same.py`) does the same by construction.

A program is recorded once; its changes are run in forks of one process that has torch, without
Inductor. Exit status 1: something that does the same is rejected, something that does not was let
through and nobody has read it, or a review is of nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import multiprocessing
import os
import random
import resource
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import msgspec
from judging.case import (
    GROUPS,
    Answer,
    Judged,
    Kept,
    Kind,
    Row,
    as_line,
    every_subject,
    group_of,
    read_kept,
    reviewed,
    rows_of,
    stale_reviews,
    wrongly_rejected,
)
from judging.subject import asked_of, judge_subject

from compilescope.change.repair.trials.warm.parent import WarmParent

_PER_SUBJECT = 8
_SAME_PER_SUBJECT = 2
_HEAVY_S = 4.0

Kinds = Sequence[tuple[Kind, int]]


def main() -> int:
    options = _parsed()
    kept = read_kept(options.keep)
    begun = time.monotonic()
    if not options.only_table:
        with contextlib.suppress(KeyboardInterrupt):
            _ask(options, kept)
    took = _Took(time.monotonic() - begun, _cpu_s())
    return 1 if _told(kept, took, as_json=options.json) else 0


def _ask(options: argparse.Namespace, kept: Kept) -> None:
    """Adds to what is kept, here and in the file."""
    kinds: Kinds = [("mutant", options.per_subject), ("same", options.same_per_subject)]
    asked = asked_of(kinds, options.seed)
    gone = {each.subject for each in kept.left} | {s for s, was in kept.finished if was == asked}
    wanted = [name for name in every_subject() if name not in gone and _is_meant(name, options)]
    random.Random(options.seed).shuffle(wanted)
    known = frozenset(each.key for each in kept.judged)
    number = 0
    with (
        _written(options.keep) as write,
        contextlib.closing(
            _answers(wanted, kinds, options.seed, known, options.heavy, options.jobs)
        ) as answers,
    ):
        for answer in answers:
            kept.add(answer)
            write(as_line(answer))
            if not isinstance(answer, Judged):
                continue
            number += 1
            if not options.quiet:
                print(_progress(answer, len(kept.judged)), file=sys.stderr, flush=True)
            if options.limit and number >= options.limit:
                break


def _is_meant(name: str, options: argparse.Namespace) -> bool:
    patterns = options.subjects
    return not patterns or any(fnmatch.fnmatch(name, f"*{each}*") for each in patterns)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--subjects", nargs="*", default=[], help="patterns of program names")
    parser.add_argument("--limit", type=int, help="so many answers, then end")
    parser.add_argument("--per-subject", type=int, default=_PER_SUBJECT, help="mutants of each")
    parser.add_argument(
        "--same-per-subject", type=int, default=_SAME_PER_SUBJECT, help="rewrites of each"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--heavy", type=float, default=_HEAVY_S, help="seconds of one run: two of each kind then"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a file of answers; those in it are not asked")
    parser.add_argument("--only-table", action="store_true", help="run nothing")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="no line for each answer")
    return parser.parse_args()


@contextlib.contextmanager
def _written(path: Path | None) -> Iterator[Any]:
    if path is None:
        yield lambda line: None
        return
    with path.open("a", encoding="utf-8", buffering=1) as stream:
        yield stream.write


def _answers(
    subjects: Sequence[str],
    kinds: Kinds,
    seed: int,
    known: frozenset[str],
    heavy_s: float,
    jobs: int,
) -> Generator[Answer, None, None]:
    asked = [(subject, kinds, seed, known, heavy_s) for subject in subjects]
    if jobs <= 1:
        for each in asked:
            yield from _judge(*each)
        _end_warm()
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for found in pool.imap_unordered(_judge_all, asked):
            yield from found


_warm: WarmParent | None = None


def _judge(
    subject: str, kinds: Kinds, seed: int, known: frozenset[str], heavy_s: float
) -> Iterator[Answer]:
    global _warm
    if _warm is None or _warm.reason:
        _warm = WarmParent()
    yield from judge_subject(subject, _warm, kinds, seed, known, heavy_s)


def _judge_all(asked: tuple[str, Kinds, int, frozenset[str], float]) -> list[Answer]:
    return list(_judge(*asked))


def _end_warm() -> None:
    if _warm is not None:
        _warm.close()


class _Took(msgspec.Struct):
    wall_s: float
    cpu_s: float
    """Of this process and all that it started; of other jobs' processes not."""


def _cpu_s() -> float:
    _end_warm()
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def _progress(answer: Judged, number: int) -> str:
    what = group_of(answer) if answer.kind == "mutant" else f"same: {answer.verdict}"
    change = " ".join(f"{answer.old} -> {answer.new}".split())[:90]
    where = f"{os.path.basename(answer.subject)}:{answer.line}"
    return f"{number:5} {what:11} {answer.seconds:5.1f} s  {answer.operator}: {where}  {change}"


def _told(kept: Kept, took: _Took, *, as_json: bool) -> list[str]:
    judged, left = kept.judged, kept.left
    mutants = [each for each in judged if each.kind == "mutant"]
    same = [each for each in judged if each.kind == "same"]
    rows = rows_of(mutants)
    survivors = [each for each in mutants if group_of(each) == "survived"]
    unread = [each for each in survivors if each.key not in reviewed()]
    rejected = list(wrongly_rejected(judged))
    stale = stale_reviews()
    wrong = [f"rejected, and the same: {_place(each)}" for each in rejected]
    wrong += [f"let through, and not read: {_place(each)}" for each in unread]
    wrong += [f"a review of nothing: {each.key} {each.subject}:{each.line}" for each in stale]
    if as_json:
        found = {
            "rows": [{**row._asdict(), "rate": row.rate} for row in rows],
            "same": {v: sum(s.verdict == v for s in same) for v in _VERDICTS},
            "survivors": [msgspec.to_builtins(each) for each in survivors],
            "rejected": [msgspec.to_builtins(each) for each in rejected],
            "left_out": [msgspec.to_builtins(each) for each in left],
            "wrong": wrong,
            "took": msgspec.to_builtins(took),
        }
        print(json.dumps(found, indent=1))
        return wrong
    print(_table(rows))
    verdicts = ", ".join(f"{sum(s.verdict == v for s in same)} {v}" for v in _VERDICTS)
    print(f"\n{len(same)} rewrites that are the same: {verdicts}")
    subjects = len({each.subject for each in judged})
    seconds = sum(each.seconds for each in judged)
    print(f"{subjects} programs, {len(left)} left out; {seconds:.0f} s for all changes")
    print(f"This time: {took.wall_s:.0f} s, {took.cpu_s:.0f} s of CPU time")
    for each in survivors:
        row = reviewed().get(each.key)
        print(f"\nsurvived  {each.key} {_place(each)}  [{each.operator}, {each.verdict}]")
        print(f"  {each.old}\n  {each.new}")
        print(f"  {row.why if row is not None else 'not read yet'}")
    for words in wrong:
        print(words)
    return wrong


_VERDICTS = ("verified", "worse", "unknown", "changed")


def _place(each: Judged) -> str:
    return f"{each.subject}:{each.line} {each.function}: {each.reason}"


def _table(rows: Sequence[Row]) -> str:
    lines = [f"| operator | mutants | {' | '.join(GROUPS)} | caught of different ones |"]
    lines.append("|---|" + "---:|" * (len(GROUPS) + 2))
    for row in rows:
        rate = f"{row.rate:.1%}" if row.rate is not None else ""
        cells = (row.made, row.not_run, row.caught, row.unknown, row.equivalent, row.survived)
        lines.append(f"| {row.operator} | {' | '.join(map(str, cells))} | {rate} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
