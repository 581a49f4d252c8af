"""Are the regions of a version what the original's were? On the recorded inputs and on others.

The patched version runs eagerly and compiled; the original eagerly, and compiled only where the
patched one differs, to see whether compiling itself is what makes the difference.
"""

from __future__ import annotations

from typing import Any

import msgspec

from compilescope.fixes.patch import Allowance
from compilescope.repair.trials.baseline import TrialBaseline
from compilescope.repair.trials.branch_checks import check_branches
from compilescope.repair.trials.changes import Changes
from compilescope.repair.trials.verification import ComparedValues
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import ReplayedRun
from compilescope.repair.trials.workbench import Workbench


def compare_values(
    bench: Workbench,
    before: TrialBaseline,
    version: Version,
    changes: Changes,
    allows: frozenset[Allowance],
) -> ComparedValues:
    """Probe the version, and hold every replay against the original's."""
    found = ComparedValues()
    found.add(before.replayable)
    if found.is_settled:
        return found
    probed = bench.probe(version, compiled=True, like=before.probed)
    if probed.timed_out:
        found.unknown(f"replaying its regions took more than {bench.limit_s:g} s")
        return found
    if probed.exit_status < 0:
        found.unknown(f"replaying its regions was killed by signal {-probed.exit_status}")
        return found
    found.add(_judged(bench, before, probed, allows))
    if not found.is_settled:
        checks, notes = check_branches(before, changes)
        found.checks += checks
        found.notes += notes
    return found


def _judged(
    bench: Workbench, before: TrialBaseline, probed: ReplayedRun, allows: frozenset[Allowance]
) -> ComparedValues:
    asked: dict[str, Any] = {
        "original": before.probed.told,
        "version": probed.told,
        "compiled": None,
        "allows": sorted(allows),
    }
    answer = bench.ask("judge_version", asked)
    if answer is None:
        answer = bench.ask("judge_version", {**asked, "compiled": before.compiled.told})
    return msgspec.convert(answer, ComparedValues)
