"""Small programs over the whole repertoire, and traps: what comes out of a real search.

A program says in its first lines what is to come out: `# ideal: <fix>` is a known ideal fix that
must be verified and kept; `# ideal: none` marks a trap, in which nothing may be called verified;
`# ideal: any` allows whatever is proven. `# rule: <fix>` asks for a fix that is only tried by its
name. `# short: <why>` admits that the ideal is not reached.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compilescope.change.repair.search import rounds
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.rounds import search
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.verifier import confirm
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

pytestmark = [pytest.mark.torch]
PROGRAMS = Path(__file__).parent.parent / "fixes" / "programs"
QUICK = {
    "trap_one_call_trains",
    "trap_class_state",
    "two_settings_at_once",
}
"""Some traps, and one that is fixed; search/test_at_once.py has another. The others are slow: a
search runs a program many times."""


MOVES_NOTHING = {"compile-parts", "compile-modules", "disable-helper"}
"""What a trap is about stays in Python as it was: it may be verified everywhere."""


def header(path: Path) -> dict[str, str]:
    """What the leading comments say."""
    found = {}
    for line in path.read_text().splitlines():
        match = re.match(r"# (\w+): (.+)", line)
        if match:
            found[match[1]] = match[2].strip()
        elif line and not line.startswith("#"):
            break
    return found


def _programs() -> list[object]:
    marked = []
    for path in sorted(PROGRAMS.glob("*.py")):
        marks = [] if path.stem in QUICK else [pytest.mark.slow, pytest.mark.timeout(900)]
        if "short" in header(path):
            marks.append(pytest.mark.xfail(reason=header(path)["short"], strict=True))
        marked.append(pytest.param(path, id=path.stem, marks=marks))
    return marked


def _confirmed_in_a_fork(bench: Workbench, *given: Any, **asked: Any) -> Verification:
    """Two thirds of what a search of a small program costs are the imports of its last process."""
    with pytest.MonkeyPatch.context() as patch:
        watch = bench.watch
        # As it was seen in a fork before: the tests of the command look at the real thing.
        patch.setattr(bench, "watch", lambda version, fresh=False, **how: watch(version, **how))
        return confirm(bench, *given, **asked)


@pytest.mark.parametrize("path", _programs())
def test_what_comes_out(path: Path, warm: WarmParent, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem not in QUICK:
        monkeypatch.setattr(rounds, "confirm", _confirmed_in_a_fork)
    said = header(path)
    ideal = said["ideal"]
    before = path.read_bytes()
    words = (str(path), *said.get("args", "").split())
    rules = frozenset(said.get("rule", "").split())
    options = SearchOptions(timed=False, limit_s=280, rules=rules)
    outcome = search(Target("script", words), options, warm)
    assert path.read_bytes() == before
    told = [(each.fix, each.verdict, each.reason or each.refused) for each in outcome.attempts]
    kept = {each.fix for each in outcome.attempts if each.kept}
    if ideal == "none":
        # Some may hold where this torch loses more at first.
        sound = {*said.get("sound", "").split(), *MOVES_NOTHING}
        assert kept <= sound, told
        assert bool(outcome.files) == bool(kept)
        assert {each.fix for each in outcome.attempts if each.verdict == "verified"} <= sound, told
    elif ideal != "any":
        assert set(ideal.replace(",", " ").split()) <= kept, told
        assert outcome.verdict == "verified"
        before_and_after = [
            (each.every_call, each.avoidable) for each in (outcome.before, outcome.after)
        ]
        # What is paid at every call comes first, a compilation is paid only once.
        assert before_and_after[1] < before_and_after[0], told


def test_there_are_enough_of_them() -> None:
    said = [header(path) for path in PROGRAMS.glob("*.py")]
    assert len(said) >= 60
    assert sum("trap" in each for each in said) >= 20
    assert all("ideal" in each for each in said)
    assert {path.stem for path in PROGRAMS.glob("*.py")} >= QUICK
    assert len(QUICK) >= 3
