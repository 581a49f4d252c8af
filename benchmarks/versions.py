"""What each torch has and does: the record behind docs/reference/versions.md, and the page.

    python benchmarks/versions.py record [NAME ...]         # in the environment of one torch
    python benchmarks/versions.py results [--note TEXT] JUNIT.xml ...    # of tests run there
    python benchmarks/versions.py page                      # writes docs/reference/versions.md

`record` detects the capabilities (`torchapi.capabilities`) and runs the examples of the registry
(those of the default tests), the rules and the fixes: `example/GB0050` is there where the example
is as it claims in this torch. It replaces what `registry/capabilities.json` says of this torch;
with names (`break/`, `example/rule/number-needed`), only of what begins with one of them.
`results` counts the tests of the junit files into benchmarks/versions.json, in the row of this
torch and this Python.
"""

from __future__ import annotations

import json
import logging
import platform
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE / "tests"), str(HERE / "tools")]
RUNS = HERE / "benchmarks" / "versions.json"
PAGE = HERE / "docs" / "reference" / "versions.md"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
KINDS = {
    "hook": (
        "Hooks",
        "Functions of torch that are watched. Where one is missing, the report says "
        "what it could not record. Two of them stand in for another where that is missing: "
        "`uncompiled-frames` and `suppressed-errors` for `frame-skips`.",
    ),
    "argument": (
        "Arguments of `torch.compile`",
        "A fix that needs one is not proposed, and a remedy does not name it, where it is missing.",
    ),
    "flag": ("Flags of `torch._dynamo.config`", ""),
    "setting": ("Settings of Inductor", ""),
    "function": ("Functions that fixes write or that we call", ""),
    "guard": ("Kinds of guards", "That are put into words of their own."),
    "break": (
        "Types of graph breaks",
        "Those that tests ask for. Which version brought which "
        "type at all: `compilescope registry`.",
    ),
    "tracing": ("What Dynamo does", "Found out by compiling a few lines with plain torch."),
}


def this_torch() -> str:
    return version("torch").partition("+")[0]


def this_python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def record(names: tuple[str, ...]) -> None:
    from compilescope.instrument.torchapi.capabilities import capabilities, has
    from compilescope.knowledge.registry.capabilities import (
        CAPABILITIES,
        SeenCapabilities,
        capabilities_text,
        load_capabilities,
    )

    logging.getLogger("torch").setLevel(logging.CRITICAL)
    questions = {each.id: partial(has, each.id) for each in capabilities()} | dict(examples())
    known = set(questions)
    found = set()
    for name, holds in questions.items():
        if name.startswith(names) and holds():
            found.add(name)
            print(name, file=sys.stderr)
    # Read late: another torch may have been recorded meanwhile.
    before = load_capabilities() if CAPABILITIES.exists() else SeenCapabilities()
    there = before.of(this_torch(), this_python()) or ()
    if names != ("",):
        known = {name for name in known if name.startswith(names)} | {*before.seen}
    found |= {name for name in there if name in known and not name.startswith(names)}
    if this_python() == before.python:
        after = before.with_torch(this_torch(), found, known)
    elif this_torch() in before.versions:
        after = before.with_python(this_torch(), this_python(), found)
    else:
        sys.exit(f"Record torch {this_torch()} with Python {before.python} first.")
    CAPABILITIES.write_text(capabilities_text(after), encoding="utf-8")
    missing = sorted(known - found)
    print(f"torch {this_torch()}: {len(found)} of {len(known)}; without", *missing, sep="\n  ")


def examples() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Those of the registry, the rules and the fixes, and whether they show what they are for."""
    from fixes import repertoire
    from fixes.test_repertoire import EXAMPLES, REFUSALS
    from registry.test_examples import KNOWN, SAMPLE
    from rules import test_rules
    from upkeep.example_runs import run_example

    def shows_break(example: Any) -> bool:
        return not run_example(example).problems

    def fires(rule: Any, text: str) -> bool:
        return bool(test_rules.findings(rule, text)[0])

    def answers(fix: Any, example: Any) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            found = repertoire.subjects(Path(folder), repertoire.shown_by(example))
            # The fix reads the program's file.
            return bool(repertoire.holds(fix, example, found))

    for gb_id in SAMPLE:
        yield f"example/{gb_id}", partial(shows_break, KNOWN[gb_id])
    for rule, each in test_rules.EXAMPLES:
        yield test_rules.example_name(rule, each), partial(fires, rule, each.bad)
    for fix, example in [*EXAMPLES, *REFUSALS]:
        yield repertoire.example_name(fix, example), partial(answers, fix, example)


def results(files: list[str], note: str) -> None:
    """Each test once: what the last of the files says of it."""
    states: dict[tuple[str | None, str | None], str] = {}
    for file in files:
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            told = {child.tag for child in case} & {"failure", "error", "skipped"}
            state = "failed" if told & {"failure", "error"} else "passed"
            name = case.get("classname"), case.get("name")
            if name == (None, None):
                continue  # Where a run was interrupted: it had begun.
            states[name] = "skipped" if told == {"skipped"} else state
    counts = Counter(states.values())
    runs = read_runs()
    python = this_python()
    row: dict[str, Any] = {
        "torch": this_torch(),
        "python": python,
        "date": date.today().isoformat(),
        **counts,
    }
    if note:
        row["note"] = note
    runs = [run for run in runs if (run["torch"], run["python"]) != (row["torch"], python)]
    text = json.dumps(sorted([*runs, row], key=lambda run: (run["torch"], run["python"])), indent=1)
    RUNS.write_text(text + "\n", encoding="utf-8")
    print(row)


def read_runs() -> list[dict[str, Any]]:
    return json.loads(RUNS.read_text(encoding="utf-8")) if RUNS.exists() else []


def page() -> str:
    """docs/reference/versions.md, from the record and the last runs."""
    from compilescope.instrument.torchapi.capabilities import capabilities
    from compilescope.knowledge.registry.capabilities import load_capabilities

    seen = load_capabilities()
    lines = [
        "# Versions of torch and Python",
        "",
        "compilescope works with torch 2.11 to 2.15. What differs between them stands in one table",
        "of capabilities (`instrument/torchapi/capabilities.py`). Each is detected in the torch at",
        "hand; no code compares versions. In which versions each was seen is kept in",
        "`knowledge/registry/capabilities.json`, and tests ask that record what to expect.",
        "",
        "`make test TORCH=2.15.0` runs the default tests with another torch, in an environment of",
        "its own. This page is written by `python benchmarks/versions.py page`.",
        "",
        "## Last test runs",
        "",
        *_runs_table(list(seen.versions)),
        "",
    ]
    for kind, (title, words) in KINDS.items():
        rows = [each for each in capabilities() if each.kind == kind]
        lines += [f"## {title}", "", *([words, ""] if words else [])]
        lines += _table([(f"`{each.name}`", each.use, each.id) for each in rows], seen)
        lines.append("")
    lines += [*_example_lines(seen), "", *_python_lines(seen), ""]
    return "\n".join(lines)


def _table(rows: list[tuple[str, str, str]], seen: Any) -> list[str]:
    heads = " | ".join(_short(each) for each in seen.versions)
    lines = [f"| name | what for | {heads} |", "|---|---|" + "---|" * len(seen.versions)]
    for name, use, key in rows:
        there = seen.seen.get(key, ())
        cells = " | ".join("yes" if each in there else "no" for each in seen.versions)
        lines.append(f"| {name} | {use} | {cells} |")
    return lines


def _runs_table(versions: list[str]) -> list[str]:
    runs = {(run["torch"], run["python"]): run for run in read_runs()}
    torches = sorted({*versions, *(torch for torch, _ in runs), *_SUPPORTED}, key=_key)
    lines = [f"| torch | {' | '.join(f'Python {each}' for each in PYTHONS)} |"]
    lines.append("|---|" + "---|" * len(PYTHONS))
    for torch in torches:
        cells = [_run_words(runs.get((torch, python))) for python in PYTHONS]
        lines.append(f"| {_short(torch)} | {' | '.join(cells)} |")
    return lines


_SUPPORTED = tuple(f"2.{minor}.0" for minor in range(11, 16))


def _key(torch: str) -> tuple[int, ...]:
    return tuple(map(int, torch.split(".")))


def _run_words(run: dict[str, Any] | None) -> str:
    if run is None:
        return "untested"
    words = [f"{run[state]} {state}" for state in ("passed", "failed", "skipped") if run.get(state)]
    note = f"; {run['note']}" if run.get("note") else ""
    return f"{', '.join(words)} ({run['date']}{note})"


def _short(torch: str) -> str:
    return torch.removesuffix(".0")


def _example_lines(seen: Any) -> list[str]:
    names = [name for name in seen.seen if name.startswith("example/")]
    lines = [
        "## Examples that differ",
        "",
        f"Of {len(names)} examples of the registry, the rules and the fixes that the default tests",
        "run, these do not show in every version what they are for: there torch traces the code,",
        "or breaks with another type.",
        "",
    ]
    differing = [name for name in names if set(seen.seen[name]) != set(seen.versions)]
    return lines + _table(
        [(f"`{name.partition('/')[2]}`", "an example", name) for name in differing], seen
    )


def _python_lines(seen: Any) -> list[str]:
    lines = [
        "## With another Python",
        "",
        f"All of the above was found with Python {seen.python}. Dynamo reads bytecode, which",
        "differs from one Python to the next. The other way round than in the tables is:",
        "",
    ]
    for python, releases in seen.pythons.items():
        for torch, names in releases.items():
            words = ", ".join(f"`{name.removeprefix('example/')}`" for name in names) or "nothing"
            lines.append(f"- Python {python} with torch {_short(torch)}: {words}.")
    return lines


def main() -> None:
    match sys.argv[1:]:
        case ["record", *names]:
            record(tuple(names) or ("",))
        case ["results", "--note", note, *files] if files:
            results(files, note)
        case ["results", *files] if files:
            results(files, "")
        case ["page"]:
            PAGE.write_text(page(), encoding="utf-8")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
