"""What of a program's losses a fix can be sought for: breaks, recompiles, failed compilations."""

from __future__ import annotations

from compilescope.analysis.findings import Finding, findings
from compilescope.fixes.subject import Program, Subject


def subjects_of(program: Program) -> list[Subject]:
    """One for each cause, ranked as the digest ranks them. What an earlier break only left behind
    goes with that one, so it is none of its own."""
    seen = program.digest
    sites = {site.fingerprint: site for site in seen.sites}
    found: list[Subject] = []
    for finding in findings(seen):
        if finding.kind == "break":
            site = sites.get(finding.fingerprint)
            if site is not None and site.consequence_of is None:
                found.append(Subject(finding, program, site=site))
        elif finding.kind == "recompile":
            found.append(_recompile(finding, program))
        elif finding.kind == "failure":
            failure = next((f for f in seen.failures if f.because == finding.because), None)
            found.append(Subject(finding, program, failure=failure))
    return found


def _recompile(finding: Finding, program: Program) -> Subject:
    for frame in program.digest.recompiles:
        if frame.because != finding.because and not set(frame.because) & set(finding.because):
            continue
        for cause in frame.causes:
            name = f"recompile/{cause.rule or cause.kind or 'unknown'}"
            place = (cause.file or frame.file, cause.line or frame.line)
            if name == finding.rule and place == (finding.file, finding.line):
                return Subject(finding, program, cause=cause, frame=frame)
    return Subject(finding, program)
