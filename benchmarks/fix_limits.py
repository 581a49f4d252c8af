"""What programs need of the limits of a proof: regions, calls, and how far right patches drift.

    python benchmarks/fix_limits.py [PROGRAM]...

Searches every program of tests/fixes/programs (or those that are given), and replays the original
and what came out. Beside the largest of each stands the limit: `_REGIONS` and `_CALLS` of
repair/trials/child/prober.py and `_APART` of repair/trials/replay_checks.py.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from compilescope.base.errors import ToolError
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.rounds import search
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.child import prober
from compilescope.change.repair.trials.replay_checks import APART, drift_of
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

PROGRAMS = Path(__file__).parent.parent / "tests" / "fixes" / "programs"


class Needs(NamedTuple):
    """Of one program."""

    regions: int
    calls: int
    """Of one region, that were replayed: others had the same kinds of arguments."""
    drift: float
    """Relative, of the sums of what its regions return, by the patches that were verified."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*", type=Path)
    found: dict[str, Needs] = {}
    with WarmParent() as warm:
        for path in parser.parse_args().programs or sorted(PROGRAMS.glob("*.py")):
            try:
                found[path.stem] = needs = _measured(path, warm)
            except ToolError as error:
                print(f"{path.stem:40} {error}")
                continue
            print(f"{path.stem:40} {needs.regions:8} {needs.calls:8} {needs.drift:10.2g}")
    limits = (prober.REGIONS, prober.CALLS, APART)
    for name, limit in zip(Needs._fields, limits, strict=True):
        most = max((getattr(each, name) for each in found.values()), default=0)
        reached = sum(getattr(each, name) >= limit for each in found.values())
        print(
            f"{name}: at most {most:g} of {len(found)} programs, limit {limit:g}, at it {reached}"
        )


def _measured(path: Path, warm: WarmParent) -> Needs:
    target = Target("script", (str(path),))
    outcome = search(target, SearchOptions(timed=False, limit_s=120), warm)
    with Workbench(target, limit_s=120, warm=warm) as bench:
        base = TrialBaseline(bench, Version(), bench.watch(Version()))
        probed = base.probed
        calls = Counter(call["region"] for call in probed.calls)
        drift = 0.0
        if outcome.files and outcome.verdict == "verified":
            version = Version(dict(outcome.files), dict(outcome.environment))
            drift = drift_of(probed, bench.probe(version, compiled=True, like=probed))
        regions = len(probed.record["regions"]) if probed.record else 0
        return Needs(regions, max(calls.values(), default=0), drift)


if __name__ == "__main__":
    main()
