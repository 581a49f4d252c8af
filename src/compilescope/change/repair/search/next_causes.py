"""A fix that brings up a new cause, and the fix of that: tried together where none wins by itself.

A list that is kept joined makes a size vary, and a bool that is computed from that size a symbol,
which an operator refuses: the list's fix is rejected for a break that another fix mends.
"""

from __future__ import annotations

from dataclasses import replace

from compilescope.change.fixes.patch import Patch, dims_joined, joining
from compilescope.change.fixes.subject import Program, subjects_of
from compilescope.change.repair.search.attempts import (
    ProposedFix,
    SearchStep,
    asked_of,
    first_proposal,
    gains,
    log_member,
    loses_no_more,
    step_of,
)
from compilescope.change.repair.search.budget import Budget
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.try_log import Tried, TryLog
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.verifier import verify
from compilescope.change.repair.trials.version import Version
from compilescope.knowledge.analysis.findings import findings

_MOST_HINDERED = 2
"""Fixes of a round that are tried so. Chosen: each costs two runs and more."""


def try_with_next(
    base: TrialBaseline,
    main: str,
    options: SearchOptions,
    log: TryLog,
    budget: Budget,
    *,
    instead_of: Verification | None = None,
) -> SearchStep | None:
    """The first pair that is proven. What a fix brought up is fixed by its first proposal.
    `instead_of`: it has to leave no more than that."""
    old = {found.fingerprint for found in findings(base.captured.digest)}
    for hindered in log.hindered[:_MOST_HINDERED]:
        captured = hindered.verification.captured
        if budget.is_spent or captured is None:
            return None
        if hindered.patch.leaves_graph:
            continue
        version = base.version.with_patch(hindered.patch)
        program = Program(captured.run, captured.digest, main, dict(version.files))
        new = [each for each in subjects_of(program) if each.finding.fingerprint not in old]
        if not new:
            continue
        options.progress("fixing what a fix brings up", 0, 0)
        facts = base.bench.survey(version, {place for each in new for place in each.watched})
        program = replace(program, facts=facts)
        for subject in new:
            subject = replace(subject, program=program)
            proposal = first_proposal(subject, options, log, whole=True)
            if proposal is None or proposal.patch.needs_human or proposal.patch.allows:
                continue
            both = version.with_patch(proposal.patch)
            proof = verify(base.bench, base, both, **asked_of([hindered, proposal], [hindered]))
            enough = instead_of is None or loses_no_more(proof, instead_of)
            if proof.verdict != "verified" or not enough or not gains(hindered.subject, proof):
                continue
            if _is_strict(hindered.patch) or _holds_alone(base, hindered, proposal, both):
                next_one = log_member(proposal, proof, options, log)
                log.keep_with(hindered, proof)
                log.keep_with(next_one, proof)
                return step_of(both, [hindered, next_one], proof)
    return None


def _holds_alone(
    base: TrialBaseline, hindered: Tried, proposal: ProposedFix, both: Version
) -> bool:
    """Does the second one hold beside the first, whatever that one states?"""
    version = base.version.with_patch(hindered.patch)
    beside = TrialBaseline(base.bench, version, light=base.light)
    asked = asked_of([proposal], [proposal])
    return verify(base.bench, beside, both, **asked).verdict == "verified"


def _is_strict(patch: Patch) -> bool:
    """What the first of the two may change would not be held against the second either: only how a
    list is kept, which is compared all the same."""
    return patch.allows == joining(dims_joined(patch.allows))
