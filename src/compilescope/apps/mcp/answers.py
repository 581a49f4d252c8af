"""What the tools answer: typed, for programs, and as a text that is never longer than an agent can
read.

A text that was cut says so, and names the call that shows the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from compilescope.base.texts import visible
from compilescope.report.places import place

MOST_TEXT = 8_000
"""Letters of a text. Chosen: some two thousand tokens."""
MOST_DIFF = 12_000
"""Letters of a diff or a script. Chosen: some hundred lines; a fix is seldom longer than twenty."""
MOST_CAUSES = 10
"""Chosen: more than an agent mends before it looks again."""
MOST_ADVICE = 2
"""Of a cause; best first."""
MOST_LINES = 12
"""Of what a program printed last."""
MOST_LETTERS = 500
"""Of one sentence, or one line of source."""


class Answer(BaseModel):
    """What every tool answers."""

    text: str = Field(default="", description="The answer to read; bounded, it says what it omits.")


class ListedAdvice(BaseModel):
    status: str = Field(
        description="`proven`: by fix; `proposed`: unverified, call fix; `by hand`; `not tried`"
    )
    fix: str | None = Field(description="ID of the fix, for `rules` of the tool fix")
    text: str
    diff: str


class ListedCause(BaseModel):
    """One graph break, recompile, fallback to eager or failed compilation."""

    number: int | None = Field(description="For `cause` of the tool explain; null if it has none.")
    kind: str
    rule: str | None
    title: str
    file: str
    line: int | None
    function: str
    source: str
    why: str
    count: int
    compile_seconds: float | None
    lost_ms: float | None
    fingerprint: str
    advice: list[ListedAdvice]


class RunAnswer(Answer):
    """A recorded run."""

    run: str = Field(description="ID for the other tools")
    command: list[str]
    torch: str | None
    ended: str = Field(description="How the program ended, in a sentence.")
    exit_status: int | None
    signal: str | None
    graphs: int
    regions: int | None = Field(description="Graphs that there would be without any cause.")
    breaks: int
    hidden_breaks_possible: bool
    recompiles: int
    failures: int
    eager_frames: int
    compile_seconds: float | None
    incomplete: str = Field(description="Why the recording ended early; empty: it is whole.")
    causes: list[ListedCause] = Field(description="The most expensive first.")
    more_causes: int = Field(description="How many are not listed.")
    output_end: str = Field(default="", description="The last lines that the program printed.")


class TriedChange(BaseModel):
    """A fix, or a candidate of tune, that was tried."""

    id: str | None
    place: str = ""
    verdict: str
    kept: bool
    reason: str
    speedup: float | None = None


class PlaceAndReason(BaseModel):
    place: str
    why: str


class FixAnswer(Answer):
    run: str | None = Field(description="ID for fix_and_write_files")
    verdict: str = Field(description="verified, rejected, unverified, or empty: nothing to fix")
    reason: str
    breaks_before: int | None
    breaks_after: int | None
    recompiles_before: int | None
    recompiles_after: int | None
    tried: list[TriedChange]
    more_tried: int
    left: list[PlaceAndReason] = Field(description="What is still there.")
    more_left: int
    diff: str = Field(description="Unified, of what is verified; relative to `root`.")
    diff_is_whole: bool
    root: str
    environment: dict[str, str] = Field(description="Variables that are part of the fix.")
    notes: list[str]


class WrittenAnswer(Answer):
    run: str
    written: list[str] = Field(description="Files that were changed.")
    already: bool = Field(description="The files had the fix already.")
    environment: dict[str, str] = Field(description="Start the program with these, too.")
    undo: str = Field(description="A git command; empty: git can't take it back.")
    notes: list[str]


class VerifyAnswer(Answer):
    run: str | None = Field(description="Of the changed program.")
    verdict: str = Field(description="verified, changed, worse or unknown")
    reason: str
    checks: list[PlaceAndReason] = Field(description="Those that do not pass.")
    new: list[PlaceAndReason] = Field(description="Causes that only the changed program has.")
    more_new: int
    gone: int | None = Field(description="Causes that only the program as it is has.")
    not_compared: list[str] = Field(description="What could not be compared, and why.")


class TuneAnswer(Answer):
    step: str
    verified: bool
    speedup: float | None
    speedup_ci: list[float] | None
    before_ms: float | None
    after_ms: float | None
    tried: list[TriedChange]
    more_tried: int
    diff: str
    diff_is_whole: bool


class MinifyAnswer(Answer):
    run: str | None
    repro: str = Field(description="Path of the script, within the runs folder.")
    script: str = Field(description="The script itself.")
    script_is_whole: bool
    verified: bool
    reason: str
    stopped: str = Field(description="What ended it early: time, calls, interrupt; or empty.")
    size_before: int | None
    size: int | None


class DiffAnswer(Answer):
    run: str | None
    verdict: str = Field(description="pass, fail or unknown")
    reason: str
    outputs: list[PlaceAndReason] = Field(description="Values that do not pass, by their path.")
    more_outputs: int
    guilty: list[PlaceAndReason] = Field(
        description="With localize: operations where the numbers diverge."
    )
    notes: list[str]


class CompareAnswer(Answer):
    before: str
    after: str
    new: list[ListedCause]
    gone: list[ListedCause]
    more_new: int
    more_gone: int
    same: int | None
    doubts: list[str]


def cut(text: str, most: int, rest: str = "") -> tuple[str, bool]:
    """As many whole lines as fit, and whether these are all, then to the last blank: a diff must
    apply. `rest`: what shows the others."""
    if len(text) <= most:
        return text, True
    kept = text[:most]
    kept = kept[: kept.rfind("\n")] if "\n" in kept else kept
    more = f" {rest}" if rest else ""
    return f"{kept}\n[cut: {len(text) - len(kept):,} more characters.{more}]", False


def readable(text: str, rest: str = "") -> str:
    """A text of a command, as an answer has it."""
    return cut(visible(text).rstrip(), MOST_TEXT, rest)[0]


def short(text: object) -> str:
    """One sentence, or one line."""
    return _bounded(visible(str(text or "").strip()))


def _bounded(said: str) -> str:
    return said if len(said) <= MOST_LETTERS else said[: MOST_LETTERS - 1] + "…"


def last_lines(output: bytes) -> str:
    """Of what a program printed."""
    lines = visible(output.decode("utf-8", "replace")).splitlines()
    return "\n".join(_bounded(line) for line in lines[-MOST_LINES:])


def cause(found: Mapping[str, Any], number: int | None = None) -> ListedCause:
    """Of a finding as `--json` has it."""
    advice = found["advice"][:MOST_ADVICE]
    return ListedCause(
        number=number,
        kind=found["kind"],
        rule=found["rule"],
        title=short(found["title"]),
        file=found["file"],
        line=found["line"],
        function=found["function"],
        source=short(found["source"]),
        why=short(found["message"]),
        count=found["count"],
        compile_seconds=found["seconds"],
        lost_ms=found["lost_ms"],
        fingerprint=found["fingerprint"],
        advice=[
            ListedAdvice(
                status=each["status"],
                fix=each["fix"],
                text=short(each["text"]),
                diff=cut(each["diff"], MOST_TEXT // 4)[0],
            )
            for each in advice
        ],
    )


def run_answer(report: Mapping[str, Any], text: str, *, printed: bytes = b"") -> RunAnswer:
    """Of one of the reports of `report --format json`."""
    seen, findings = report["summary"], report["findings"]
    return RunAnswer(
        text=text,
        run=seen["run"],
        command=list(seen["command"]),
        torch=seen["torch"],
        ended=seen["ended"]["text"],
        exit_status=seen["exit_status"],
        signal=seen["ended"]["signal"],
        graphs=seen["graphs"],
        regions=seen["regions"],
        breaks=len(seen["sites"]),
        hidden_breaks_possible=seen["hidden_breaks_possible"],
        recompiles=sum(each["count"] for each in seen["recompiles"]),
        failures=len(seen["failures"]),
        eager_frames=len(seen["eager_frames"]),
        compile_seconds=seen["compile_seconds"],
        incomplete=seen["cut_short_reason"] or "" if seen["cut_short"] else "",
        causes=[cause(each, n) for n, each in enumerate(findings[:MOST_CAUSES], 1)],
        more_causes=max(0, len(findings) - MOST_CAUSES),
        output_end=last_lines(printed),
    )


def fix_answer(found: Mapping[str, Any]) -> FixAnswer:
    """Of `fix --json`."""
    root, run = found["root"], found["run"]
    tried = [
        TriedChange(
            id=each["fix"],
            place=place(each["file"], each["line"], root),
            verdict=each["verdict"],
            kept=each["kept"],
            reason=short(each["reason"]),
        )
        for each in found["fixes"]
    ]
    tried.sort(key=lambda each: not each.kept)
    left = [PlaceAndReason(place=each["place"], why=short(each["why"])) for each in found["left"]]
    diff, whole = cut(found["diff"], MOST_DIFF, "fix_and_write_files applies all of it.")
    usable = found["verdict"] == "verified" and bool(found["diff"] or found["environment"])
    answer = FixAnswer(
        run=run,
        verdict=found["verdict"] or "",
        reason=short(found["reason"]),
        breaks_before=found["breaks_before"],
        breaks_after=found["breaks_after"],
        recompiles_before=found["recompiles_before"],
        recompiles_after=found["recompiles_after"],
        tried=tried[:MOST_CAUSES],
        more_tried=max(0, len(tried) - MOST_CAUSES),
        left=left[:MOST_CAUSES],
        more_left=max(0, len(left) - MOST_CAUSES),
        diff=diff,
        diff_is_whole=whole,
        root=root,
        environment=found["environment"],
        notes=[short(each) for each in found["notes"][:MOST_CAUSES]],
    )
    counts = (
        f"graph breaks {_shown(answer.breaks_before)} -> {_shown(answer.breaks_after)}, "
        f"recompiles {_shown(answer.recompiles_before)} -> {_shown(answer.recompiles_after)}"
    )
    lines = [f"{answer.verdict or 'nothing to fix'}: {counts}. {answer.reason}".rstrip()]
    lines += _attempts(answer.tried, answer.more_tried)
    lines += _list("Still there", answer.left, answer.more_left)
    lines += [f"Note: {each}" for each in answer.notes]
    lines += [f"Start with {name}={value}" for name, value in answer.environment.items()]
    if usable:
        lines += [
            "",
            f"No file was changed. fix_and_write_files with run={run} applies:",
            diff,
        ]
    answer.text = "\n".join(lines)
    return answer


def tune_answer(found: Mapping[str, Any]) -> TuneAnswer:
    """Of `tune --json`."""
    tried = [
        TriedChange(
            id=each["id"],
            verdict=each["verdict"],
            kept=each["verdict"] == "verified",
            reason=short(each["reason"]),
            speedup=each["speedup"],
        )
        for each in found["candidates"]
    ]
    tried.sort(key=lambda each: not each.kept)
    diff, whole = cut(found["diff"], MOST_DIFF)
    answer = TuneAnswer(
        step=found["step"] or "",
        verified=found["speedup"] is not None,
        speedup=found["speedup"],
        speedup_ci=found["speedup_ci"],
        before_ms=found["before_ms"],
        after_ms=found["after_ms"],
        tried=tried[: 2 * MOST_CAUSES],
        more_tried=max(0, len(tried) - 2 * MOST_CAUSES),
        diff=diff,
        diff_is_whole=whole,
    )
    if answer.speedup is not None:
        ci = answer.speedup_ci
        within = f" ({ci[0]:.3g} to {ci[1]:.3g})" if ci else ""
        head = f"A step at {answer.step} is {answer.speedup:.3g}x as fast{within}."
    else:
        head = f"No candidate makes the step at {answer.step} faster, by what was measured."
    lines = [head, *_attempts(answer.tried, answer.more_tried)]
    answer.text = "\n".join(
        [*lines, *(["", "No file was changed:", visible(diff)] if diff else [])]
    )
    return answer


def minify_answer(found: Mapping[str, Any], script: str) -> MinifyAnswer:
    """Of `minify --json`, which wrote this script."""
    shown, whole = cut(script, MOST_DIFF, "The file has all of it.")
    reason = short(found["reason"])
    early = f" It ended early: {found['stopped']}." if found["stopped"] else ""
    how = f"not verified: {reason}" if reason else "verified in a fresh process"
    head = f"{found['size_before']} -> {found['size']}, {how}.{early}"
    return MinifyAnswer(
        text=f"{head}\n{found['repro']}\n\n{visible(shown)}",
        run=found["run"],
        repro=found["repro"],
        script=shown,
        script_is_whole=whole,
        verified=not reason,
        reason=reason,
        stopped=found["stopped"],
        size_before=found["size_before"],
        size=found["size"],
    )


def diff_answer(found: Mapping[str, Any]) -> DiffAnswer:
    """Of `diff --json`."""
    values = {**found["outputs"], **(found["gradients"] or {})}
    wrong = [
        PlaceAndReason(place=short(name), why=short(f"{each['verdict']}: {each['reason']}"))
        for name, each in values.items()
        if each["verdict"] != "pass"
    ]
    guilty = [
        PlaceAndReason(
            place=f"{each['file']}:{each['line']}", why=short(f"{each['target']} {each['reason']}")
        )
        for each in (found["guilty"] or ())[:MOST_CAUSES]
    ]
    reason = found["reason"] or found["error"]
    answer = DiffAnswer(
        run=found["run"],
        verdict=found["verdict"],
        reason=short(reason),
        outputs=wrong[:MOST_CAUSES],
        more_outputs=max(0, len(wrong) - MOST_CAUSES),
        guilty=guilty,
        notes=[short(each) for each in found["notes"][:MOST_CAUSES]],
    )
    lines = [f"{answer.verdict}: {answer.reason}"]
    lines += _list("Not the same", answer.outputs, answer.more_outputs)
    lines += _list("Where they diverge", answer.guilty, 0)
    answer.text = "\n".join([*lines, *(f"Note: {each}" for each in answer.notes)])
    return answer


def compare_answer(found: Mapping[str, Any], text: str) -> CompareAnswer:
    """Of `compare --json`; of benchmarks and sweeps the text alone."""
    new, gone = found.get("new", ()), found.get("gone", ())
    plain = "figures" in found
    return CompareAnswer(
        text=text,
        before=found["before"],
        after=found["after"],
        new=[cause(each) for each in new[:MOST_CAUSES]] if plain else [],
        gone=[cause(each) for each in gone[:MOST_CAUSES]] if plain else [],
        more_new=max(0, len(new) - MOST_CAUSES) if plain else len(new),
        more_gone=max(0, len(gone) - MOST_CAUSES) if plain else len(gone),
        same=found.get("same"),
        doubts=[short(each) for each in found.get("doubts", ())],
    )


def verify_answer(found: Mapping[str, Any]) -> VerifyAnswer:
    """Of `verify --json`."""
    checks = [
        PlaceAndReason(place=each["name"], why=short(f"{each['verdict']}: {each['words']}"))
        for each in found["checks"]
        if each["verdict"] != "pass"
    ]
    new = [
        PlaceAndReason(
            place=place(each["file"], each["line"], found["root"]), why=short(each["title"])
        )
        for each in found["new"]
    ]
    answer = VerifyAnswer(
        run=found["run"],
        verdict=found["verdict"],
        reason=short(found["reason"]),
        checks=checks[:MOST_CAUSES],
        new=new[:MOST_CAUSES],
        more_new=max(0, len(new) - MOST_CAUSES),
        gone=len(found["gone"]),
        not_compared=[short(each) for each in found["not_compared"][:MOST_CAUSES]],
    )
    lines = [f"{answer.verdict}: {answer.reason}".rstrip(": ")]
    lines += _list("Checks that do not pass", answer.checks, len(checks) - len(answer.checks))
    lines += _list("New", answer.new, answer.more_new)
    lines += [f"Gone: {answer.gone}"] if answer.gone else []
    lines += [f"Compared: {short(each)}" for each in found["compared"][:MOST_CAUSES]]
    answer.text = "\n".join([*lines, *(f"Not compared: {each}" for each in answer.not_compared)])
    return answer


def _shown(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _attempts(tried: Sequence[TriedChange], more: int) -> list[str]:
    lines = []
    for each in tried:
        speed = f", {each.speedup:.3g}x" if each.speedup is not None else ""
        at = f"{each.place}: " if each.place else ""
        why = f": {each.reason}" if each.reason else ""
        kept = " (kept)" if each.kept else ""
        lines.append(f"- {at}{each.id or 'no fix'}: {each.verdict}{speed}{kept}{why}")
    return [*lines, *([f"- and {more} more"] if more else [])]


def _list(title: str, found: Sequence[PlaceAndReason], more: int) -> list[str]:
    if not found:
        return []
    rest = [f"- and {more} more"] if more else []
    return [f"{title}:", *(f"- {each.place}: {each.why}" for each in found), *rest]
