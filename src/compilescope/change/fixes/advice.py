"""What to do about each cause of a run: the one home of advice, for every view.

A change is only ever a fix's own proposal on the user's lines, so nothing is advised that the fix
would refuse. Where every fix refuses, the reason that matters is told with what a person can do;
a rule's general words stand alone only where no fix speaks.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

import msgspec

from compilescope.change.fixes.catalogue import Proposals, index, proposals_for
from compilescope.change.fixes.compilation.run_index import forget_index
from compilescope.change.fixes.diffs import patch_diff
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.kept_texts import KeptTexts
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.program_files import main_file_of
from compilescope.change.fixes.subject import Program, Subject
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import by_cost, findings
from compilescope.knowledge.analysis.partial_digest import is_long
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import RecompiledFrame, RecompileFinding
from compilescope.knowledge.findings.remedy import Advice, Remedy, is_not_tried
from compilescope.knowledge.rules.causes.device_words import DEVICE_RULES
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.record.bodies import FixAttempt
from compilescope.record.run import Run
from compilescope.record.uncollected import uncollected

MOST_ASKED = 300
"""Asking the fixes takes some ten milliseconds a cause, and more in large files: about 3 s for so
many. Chosen; of causes beyond this it is said that nobody tried."""
_SOURCE_OF_CAUSE = 8_000
"""Letters of source that may be parsed for each of them, in a long run. Chosen: a function and what
it calls, not a whole program."""
_MOST_PROPOSALS = 3
"""For one cause. Chosen: what a report can show; each fix that is asked looks at the source."""
_LAST_RESORT = 200  # `Fix.order` from which a change comes after what a person can do.
_BROKEN_VALUE, _BROKEN_SIZE = "broken-value", "broken-size"
_STILL_A_VALUE = ("value-from-outside", "value-read-first", "outside-of-compiled")
"""Without the break, but with the value as an argument, which is guarded as it was before."""
_NOT_RUN = ("pytest", "-")
"""How a command begins that `fix` does not run: a test session, standard input."""
_READING_RULES = ("scalar-extraction", "tensor-if")
"""What Dynamo breaks at where torch_xla reads a value."""
_KEEPS_VALUES = frozenset(
    {
        "tensor-for-number",
        "unbind-for-tolist",
        "where-for-if",
        "where-for-return",
        "where-for-conditional",
    }
)


_LARGEST_OF_LONG = 120_000
"""Letters of a file that may be parsed, in a long run. Chosen, as the one below: a report of such a
run is slow as it is, so its advice looks less far."""
_SOURCE_OF_LONG = 60_000
"""Letters of source that are parsed in all, in such a run."""
_CALLERS_OF_LONG = 12
"""Files that may lead to a cause whose callers are looked at, in such a run."""


@uncollected()
def advised(
    run: Run,
    seen: Digest,
    most: int = MOST_ASKED,
    *,
    only: int | None = None,
    ranked: Sequence[Finding] = (),
) -> Digest:
    """The digest with advice for every break, recompile and failure. The fixes are asked about the
    `most` expensive causes, or without any limit about the cause of one number; the others are
    "not tried", with the words of their rules. `ranked` are its causes by cost, where they are
    known already."""
    if not (seen.sites or seen.recompiles or seen.failures):
        return seen
    adviser = _Adviser(run, seen, ranked or by_cost(findings(seen)), most, only)
    adviser.ask_worst_first()
    found = msgspec.structs.replace(
        seen,
        failures=tuple(map(adviser.failure, seen.failures)),
        sites=tuple(map(adviser.site, seen.sites)),
        recompiles=tuple(map(adviser.frame, seen.recompiles)),
    )
    forget_index(run)
    return found


class _Adviser(msgspec.Struct, dict=True):
    run: Run
    seen: Digest
    ranked: Sequence[Finding]
    most: int = MOST_ASKED
    only: int | None = None
    """The number of the one cause that is asked about."""
    _known: dict[tuple[str, str], tuple[Advice, ...]] = msgspec.field(default_factory=dict)

    @cached_property
    def program(self) -> Program:
        header = self.run.header
        hurried = is_long(self.run) and self.only is None
        return Program(
            self.run,
            self.seen,
            main_file_of(header.command, header.cwd),
            KeptTexts(self.run, self.is_here),
            on_this_machine=self.is_here,
            most_source=min(self.most * _SOURCE_OF_CAUSE, _SOURCE_OF_LONG) if hurried else None,
            largest_file=_LARGEST_OF_LONG if hurried else None,
            most_callers=_CALLERS_OF_LONG if hurried else None,
        )

    @cached_property
    def numbers(self) -> dict[tuple[str, str], int]:
        """The number of each cause, by its kind and fingerprint: its place by cost, from 1."""
        return {(each.kind, each.fingerprint): number for number, each in enumerate(self.ranked, 1)}

    @cached_property
    def last_asked(self) -> int:
        """The number of the last cause there is time for: each is looked for in a whole file."""
        return last_affordable(self.ranked[: self.most], self.program) or self.most

    def ask_worst_first(self) -> None:
        """There is only so much source that is parsed: it is for the most expensive causes."""
        asking: dict[tuple[str, str], tuple[int, Callable[[], object]]] = {}

        def note(finding: Finding, ask: Callable[[], object]) -> None:
            """Thousands of entries may be one cause."""
            number = self._number(finding)
            if self._is_wanted(number):
                asking.setdefault((finding.kind, finding.fingerprint), (number, ask))

        for failure in self.seen.failures:
            note(failure, partial(self.failure, failure))
        for site in self.seen.sites:
            note(site, partial(self.site, site))
        for frame in self.seen.recompiles:
            for cause in frame.causes:
                note(cause, partial(self.frame, frame))
        for _, ask in sorted(asking.values(), key=lambda each: each[0]):
            ask()

    def _number(self, finding: Finding) -> int:
        """0 for what is no cause of its own: it is asked about as the first ones are."""
        return self.numbers.get((finding.kind, finding.fingerprint), 0)

    def _is_asked(self, finding: Finding) -> bool:
        return self._is_wanted(self._number(finding))

    def _is_wanted(self, number: int) -> bool:
        return number <= self.last_asked if self.only is None else number == self.only

    @cached_property
    def sites_by_name(self) -> dict[str, BreakFinding]:
        return {site.fingerprint: site for site in reversed(self.seen.sites)}

    @cached_property
    def sites_by_line(self) -> dict[tuple[str, int | None], list[BreakFinding]]:
        found: dict[tuple[str, int | None], list[BreakFinding]] = {}
        for site in self.seen.sites:
            found.setdefault((site.file, site.line), []).append(site)
        return found

    @property
    def is_here(self) -> bool:
        """Did the program run on this machine?"""
        host = self.run.header.host
        if not host:
            return False
        import socket

        return host == socket.gethostname()

    @cached_property
    def attempts(self) -> dict[str, list[FixAttempt]]:
        """By the event of the cause that each was tried on."""
        found: dict[str, list[FixAttempt]] = {}
        for _, body in self.run.of(FixAttempt):
            if body.because and body.fix:
                found.setdefault(body.because, []).append(body)
        return found

    @cached_property
    def fix_command(self) -> str:
        """What to type; empty where `fix` has nothing to run."""
        command = self.run.header.command
        if not command or command[0] in _NOT_RUN:
            return ""
        flag = ["--torchrun"] if command[0] == "torchrun" else [command[0]]
        return shlex.join(["compilescope", "fix", *flag, *command[1:]])

    def site(self, site: BreakFinding) -> BreakFinding:
        if site.consequence_of is not None:
            root = self.sites_by_name[site.consequence_of]
            where = f"{os.path.basename(root.file)}:{root.line}"
            advice: tuple[Advice, ...] = (
                by_hand(f"Fix the graph break at {where} first: this one goes away with it."),
            )
        elif site.rule in DEVICE_RULES:
            verified = tuple(self._verified(site))
            offered = () if verified else self._lazy(site)
            advice = (*verified, *offered, *off_dynamo(site))
            if len(advice) > len(site.remedy):
                advice = tuple(without_refusal(advice, site))
        else:
            advice = self._advice(site)
        return msgspec.structs.replace(site, advice=advice)

    def _lazy(self, site: BreakFinding) -> Iterator[Advice]:
        """Changes that keep a value on the device: what Dynamo can trace, torch_xla can record."""
        if site.rule != "xla/host-read" or not site.source.strip():
            return
        if not self._is_asked(site):
            yield self._not_tried(self._number(site))
            return
        stops = self.program.stops
        for rule in _READING_RULES:
            subject = Subject(msgspec.structs.replace(site, rule=rule), self.program)
            for fix, patch in proposals_for(subject, most=_MOST_PROPOSALS).made:
                if fix.id in _KEEPS_VALUES and not patch.needs_human:
                    yield self._proposed(subject, fix, patch)
                    return
        if self.program.stops > stops:
            yield self._not_tried(self._number(site))

    def frame(self, frame: RecompiledFrame) -> RecompiledFrame:
        causes = tuple(
            msgspec.structs.replace(cause, advice=self._of_cause(cause)) for cause in frame.causes
        )
        return msgspec.structs.replace(frame, causes=causes)

    def _of_cause(self, cause: RecompileFinding) -> tuple[Advice, ...]:
        """For a value that a break brought into Python the changes that mend the break: without
        it there is no rest of the function to compile again."""
        program = self._of_the_program(cause)
        if program:
            return program
        breaks = list(self._of_the_break(cause))
        for advice in breaks:
            if advice[0].diff and advice[0].fix not in _STILL_A_VALUE:
                return advice
        own = self._advice(cause)
        if own and own[0].diff:
            return own
        # What would mend the break would mend this, and nobody looked.
        untried = next((advice for advice in breaks if is_not_tried(advice)), own)
        return own if own and self._number(cause) == 1 else untried

    def _of_the_break(self, cause: RecompileFinding) -> Iterator[tuple[Advice, ...]]:
        for site in self._left_by(cause):
            advice = self.site(site).advice
            if advice and site.consequence_of is None:
                yield advice

    def _of_the_program(self, cause: RecompileFinding) -> tuple[Advice, ...]:
        """What is said of the program at the break that left the value."""
        told = (
            site
            for site in self._left_by(cause)
            if any(each.kind == "program" for each in site.remedy)
        )
        return next((self.site(site).advice for site in told), ())

    def _left_by(self, cause: RecompileFinding) -> Sequence[BreakFinding]:
        """The breaks without which the value would be none of Python's, or the size none of an
        input's."""
        code = cause.compiled
        if cause.rule not in (_BROKEN_VALUE, _BROKEN_SIZE):
            return ()
        if cause.rule == _BROKEN_SIZE:
            made = f"{cause.subject.partition('.size()')[0]} = "
            places = [site for site in self.seen.sites if site.source.strip().startswith(made)]
            places = [s for s in places if (s.file, s.function) == (code.file, code.function)]
            if places:
                # A later break gives the size to the rest too: the first one's fix is not enough.
                return [site for site in places if site.line == code.resumed_at]
        return self.sites_by_line.get((code.file, code.resumed_at), ())

    def failure(self, failure: FailureFinding) -> FailureFinding:
        return msgspec.structs.replace(failure, advice=self._advice(failure))

    def _advice(self, finding: Finding) -> tuple[Advice, ...]:
        """One value guarded in two parts of a function, or a line that breaks twice, is one cause:
        it is asked about once."""
        key = (finding.kind, finding.fingerprint)
        if key not in self._known:
            self._known[key] = tuple(self._ask(finding))
        return self._known[key]

    def _ask(self, finding: Finding) -> Iterator[Advice]:
        number = self._number(finding)
        if not self._is_wanted(number):
            # Most causes of a long run are such: nothing else is made of them.
            yield self._not_tried(number)
            yield from (by_hand(remedy.text) for remedy in finding.remedy)
            return
        tried = self._tried(finding)
        verified = list(self._verified(finding))
        of_program = [by_hand(each.text) for each in finding.remedy if each.kind == "program"]
        # A flag that was seen to help is still no reason to leave the program as it is.
        flags = [each for each in verified if of_program and _is_flag(each.fix)]
        yield from (each for each in verified if each not in flags)
        spoken = {each.fix for each in tried if each.verdict != "unverified"}
        stops = self.program.stops
        subject = Subject(finding, self.program)
        proposals = proposals_for(subject, most=_MOST_PROPOSALS + len(spoken))
        made = _leave_out_untold([each for each in proposals.made if each[0].id not in spoken])
        remedies = tuple(each for each in finding.remedy if each.kind != "program")
        last = [self._proposed(subject, *each) for each in made if each[0].order >= _LAST_RESORT]
        offered = [self._proposed(subject, *each) for each in made if each[0].order < _LAST_RESORT]
        yield from of_program
        yield from flags
        if self.program.stops > stops and not any(each.diff for each in (*verified, *offered)):
            if number == 1:
                # What is read first says what to do, if anything is known.
                yield from self._of_first(offered, remedies)
                return
            yield self._not_tried(number)
            yield from offered
            yield from (by_hand(remedy.text) for remedy in remedies)
            return
        yield from sorted(offered, key=lambda advice: not advice.diff)
        yield from self._words(proposals, remedies, alone=not (offered or of_program or last))
        yield from last

    def _not_tried(self, number: int) -> Advice:
        which = f" --cause {number}" if number else ""
        why = (
            "This report did not parse all the source that a fix needs."
            if self._is_wanted(number)
            else "This report did not look for a fix."
        )
        return Advice(None, "not tried", "", f"{why} `{self._explain}{which}` does.")

    def _of_first(self, offered: list[Advice], remedies: tuple[Remedy, ...]) -> Iterator[Advice]:
        yield from offered
        yield from (by_hand(remedy.text) for remedy in remedies)
        words = f"`{self._explain} --cause 1` looks for a fix in all of the source."
        yield Advice(None, "proposed", "", words)

    @cached_property
    def _explain(self) -> str:
        return shlex.join(["compilescope", "explain", self.run.header.run])

    def _tried(self, finding: Finding) -> list[FixAttempt]:
        return [each for event in finding.because for each in self.attempts.get(event, ())]

    def _verified(self, finding: Finding) -> Iterator[Advice]:
        for each in self._tried(finding):
            if each.verdict == "verified" and each.kept:
                yield Advice(each.fix, "proven", each.diff, sentence(each.title, each.states))

    def _proposed(self, subject: Subject, fix: Fix, patch: Patch) -> Advice:
        told = sentence(fix.title, patch.states)
        if patch.needs_human:
            return Advice(fix.id, "by hand", "", sentence(fix.title, patch.needs_human))
        if fix.only_run_tells:
            command = self.fix_command or "compilescope fix"
            words = f"`{command}` can try it: {fix.title}. It keeps it only if your program"
            return Advice(fix.id, "proposed", "", f"{words} still computes and prints the same.")
        theirs = [file for file in patch.files if not subject.program.is_own(file)]
        if theirs:
            script = self.fix_command.replace("compilescope fix", "compilescope fix --script", 1)
            way = f"`{script}` makes" if script else "`compilescope fix --script` makes"
            name = os.path.basename(theirs[0])
            words = f"{way} a copy of your program with {name} patched: {fix.title}."
            return Advice(fix.id, "proposed", "", words)
        if patch.environment:
            setting = " ".join(f"{name}={value}" for name, value in patch.environment.items())
            told = f"Start the program with `{setting}`. {told}"
        return Advice(fix.id, "proposed", patch_diff(subject, patch), told)

    def _words(
        self, proposals: Proposals, remedies: tuple[Remedy, ...], *, alone: bool
    ) -> Iterator[Advice]:
        """What a person can do; with the reason that no fix does it, where none is offered."""
        refusal = proposals.reason
        if not alone or refusal is None:
            yield from (by_hand(remedy.text) for remedy in remedies)
            return
        if isinstance(refusal, NeedsRun):
            command = self.fix_command or "compilescope fix"
            fix = next(fix for fix, each in proposals.refused if each is refusal)
            yield Advice(
                fix.id,
                "proposed",
                "",
                f"Run `{command}` to find out whether a fix works: {refusal}.",
            )
            yield from (by_hand(remedy.text) for remedy in remedies)
            return
        own = remedies[0].text if remedies else ""
        # What a hook returns replaces a value: its rule says so, and the fix does not know.
        first = own if "since it is a hook" in own else refusal.instead or own
        yield by_hand(why_by_hand(refusal, first))
        yield from (by_hand(remedy.text) for remedy in remedies if remedy.text != first)


def _is_flag(fix: str | None) -> bool:
    return fix in index() and index()[fix].kind == "config"


_MOST_READ = 600_000
"""Letters: a file many times at first, then once for a few causes in it. Chosen, as the numbers
below, which are rough: together they bound a report's time, whatever it is about."""
_AT_FIRST = 8
"""Times that a file is read until its first cause has its advice."""
_AT_FIRST_AT_MOST = 60_000
"""Letters of it that count."""
_CAUSES_A_READING = 4
"""Causes in a file that cost as much as reading it once."""
_OF_A_CAUSE = 1_000
"""What it takes to ask about a cause in however small a file, in letters."""


def last_affordable(causes: Iterable[Finding], program: Program) -> int | None:
    """The number of the last of these causes that there is time for; None where that is all."""
    left = _MOST_READ
    letters: dict[str, int] = {}
    for number, cause in enumerate(causes, 1):
        if cause.file not in letters:
            letters[cause.file] = _letters(cause.file, program)
            left -= _AT_FIRST * min(letters[cause.file], _AT_FIRST_AT_MOST)
        left -= letters[cause.file] // _CAUSES_A_READING + _OF_A_CAUSE
        if left < 0 and number > 1:
            return number - 1
    return None


def _letters(file: str, program: Program) -> int:
    """That are searched and changed: those of a library are not."""
    if not program.is_own(file):
        return 0
    try:
        return len(program.text(file))
    except Refused:
        return 0


def without_refusal(advice: tuple[Advice, ...], site: BreakFinding) -> Iterator[Advice]:
    """A change comes first, so nothing is left to excuse."""
    for each in advice:
        plain = each.text.endswith(site.remedy[0].text)
        yield by_hand(site.remedy[0].text) if plain else each


def off_dynamo(site: BreakFinding) -> Iterator[Advice]:
    """Fixes change what Dynamo traces; this graph ended for another reason."""
    first, *others = site.remedy
    reason = DEVICE_RULES[site.rule or ""].by_hand
    if site.rule == "xla/host-read" and not site.source.strip():
        reason = "the log does not show the line, `logs --source DIR` would"
    yield by_hand(f"No automatic fix: {reason}. {first.text}")
    yield from (by_hand(remedy.text) for remedy in others)


def by_hand(text: str) -> Advice:
    return Advice(None, "by hand", "", text)


def why_by_hand(refusal: Refused, words: str) -> str:
    reason = str(refusal).rstrip(".")
    return (
        f"No automatic fix: {reason}. {words[0].upper()}{words[1:]}"
        if words
        else f"No automatic fix: {reason}."
    )


def sentence(title: str, more: str) -> str:
    """A title that begins with code keeps its case."""
    first = title.split(" ", 1)[0]
    head = title if "." in first or "_" in first else title[:1].upper() + title[1:]
    return f"{head.rstrip('.')}. {more}" if more else f"{head.rstrip('.')}."


def _leave_out_untold(made: list[tuple[Fix, Patch]]) -> list[tuple[Fix, Patch]]:
    """Where the lines themselves can be changed, what takes a run to say anything is no advice."""
    source = [each for each in made if each[0].kind == "source"]
    if all(fix.only_run_tells for fix, _ in source):
        return made
    return [each for each in made if each not in source or not each[0].only_run_tells]
