"""Advice as readers see it: the change and what it is worth, and where to start."""

from __future__ import annotations

import msgspec

from builders import event, frame, run_of
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.remedy import Advice
from compilescope.record.bodies import (
    Body,
    CacheEntryMiss,
    CompileTime,
    FailedGuard,
    FixAttempt,
    GraphBreak,
    LogRead,
    Recompile,
)
from compilescope.record.stack import CodeRef
from compilescope.report.blocks import (
    Block,
    Diff,
    Document,
    Fold,
    Heading,
    Item,
    Paragraph,
    Part,
    plain,
)
from compilescope.report.cause_list import start_with
from compilescope.report.finding import ShownAdvice, advice_blocks, advice_text
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

LONG = "+    y = " + "x * " * 60 + "x"
DIFF = f"--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,2 @@\n def f(x):\n-    y = x.item()\n{LONG}\n"
TRY = Advice("a-fix", "proposed", DIFF, "A change.")
PROVEN = Advice("a-fix", "proven", DIFF, "A change.")
HAND = Advice(None, "by hand", "", "Return `y` and test it in the caller.")
CODE = CodeRef(frame().file, 6, "forward")


def document(blocks: list[Block]) -> Document:
    return Document("t", "", (Part("p", "", tuple(blocks)),))


def test_a_change_says_what_it_is_worth() -> None:
    for advice, worth in (
        (TRY, "unverified"),
        (PROVEN, "verified:"),
    ):
        blocks = advice_blocks((advice, HAND), ShownAdvice(), "here", brief=False)
        assert any(isinstance(block, Diff) for block in blocks)
        text = "\n".join(plain(b.words) for b in blocks if isinstance(b, Paragraph))
        assert worth.replace("`", "") in text and "Return y" in text.replace("`", "")


def test_a_notebook_is_told_no_command() -> None:
    many = Advice("a-fix", "proposed", DIFF + "+    more()\n" * 60, "A change.")
    for advice in (TRY, many):
        blocks = advice_blocks((advice,), ShownAdvice(in_python=True), "here", brief=True)
        text = "\n".join(plain(b.words) for b in blocks if isinstance(b, Paragraph))
        assert "unverified" in text and "compilescope" not in text


def test_one_change_for_several_causes_is_shown_once() -> None:
    told = ShownAdvice()
    first = advice_blocks((TRY,), told, "a.py:1", brief=False)
    second = advice_blocks((TRY,), told, "a.py:9", brief=False)
    assert sum(isinstance(block, Diff) for block in (*first, *second)) == 1
    assert plain(second[-1].words) == "same as a.py:1"  # type: ignore[union-attr]
    other = Advice("other", "proposed", DIFF, "The same change in other words.")
    third = advice_blocks((other,), told, "a.py:11", brief=False)
    assert "same change as for a.py:1" in plain(third[-1].words)  # type: ignore[union-attr]


def test_a_summary_shows_the_first_alone() -> None:
    blocks = advice_blocks((HAND, TRY), ShownAdvice(), "here", brief=True)
    assert len(blocks) == 1


def test_lines_of_a_diff_stay_whole_in_every_format() -> None:
    made = document([Diff(DIFF)])
    for text in (to_text(made, width=60), to_markdown(made), to_html(made)):
        assert LONG in text
    assert "```diff" in to_markdown(made)
    assert '<span class="removed">' in to_html(made)


def _run_with_costs() -> Digest:
    entry = CacheEntryMiss("0/0", (FailedGuard("n == 3", "n", "3", "4", "CONSTANT_MATCH"),))
    seen = digest(
        run_of(
            event(GraphBreak(gb_type="A break", frame=CODE), stack=(frame(),), compile_id="3/0"),
            event(Recompile(CODE, (entry,)), compile_id="0/1"),
            event(CompileTime(duration_ns=5_000_000_000), compile_id="0/1"),
        )
    )
    (again,) = seen.recompiles
    (cause,) = again.causes
    again = msgspec.structs.replace(again, causes=(msgspec.structs.replace(cause, advice=(HAND,)),))
    return msgspec.structs.replace(seen, recompiles=(again,))


def _reading(seen: Digest) -> Reading:
    reading = Reading(run_of())
    reading.__dict__["digest"] = seen  # As it would be, had the fixes said so.
    return reading


def test_where_to_start_is_the_cause_that_loses_most() -> None:
    seen = _run_with_costs()
    heading, item = start_with(_reading(seen))
    assert isinstance(heading, Heading) and heading.note == "the cause to look at first"
    assert isinstance(item, Item) and item.number == "1"
    assert plain(item.right) == "1 recompile, 5.00 s"
    site = msgspec.structs.replace(seen.sites[0], advice=(TRY,))
    heading, item = start_with(_reading(msgspec.structs.replace(seen, sites=(site,))))
    assert isinstance(item, Item) and item.number == "1", "whatever is easy to change"
    eager = msgspec.structs.replace(site, gave_up=(CodeRef("model.py", 1, "f"),))
    _, item = start_with(_reading(msgspec.structs.replace(seen, sites=(eager,))))
    assert isinstance(item, Item) and item.number == "1"
    assert any(isinstance(block, Diff) for block in item.blocks), "what runs eagerly in every call"


def test_a_page_folds_the_other_ways_away() -> None:
    blocks = advice_blocks((TRY, HAND), ShownAdvice(folding=True), "a.py:1", brief=False)
    fold = blocks[-1]
    assert isinstance(fold, Fold) and plain(fold.summary) == "1 other way"
    assert not any(isinstance(block, Fold) for block in blocks[:-1])


def test_sentences_carry_the_change_too() -> None:
    seen = _run_with_costs()
    site = msgspec.structs.replace(seen.sites[0], advice=(TRY,))
    found = findings(msgspec.structs.replace(seen, sites=(site,)))[0]
    text = advice_text(found)
    assert text.startswith("Try: A change. (unverified")
    assert text.endswith(LONG)


def test_a_program_that_is_in_no_file_must_be_saved_first() -> None:
    blocks = advice_blocks((TRY,), ShownAdvice(from_stdin=True), "<stdin>:4", brief=True)
    text = "\n".join(plain(b.words) for b in blocks if isinstance(b, Paragraph))
    assert "save the program in a file" in text


def test_what_fix_does_not_run_is_not_promised() -> None:
    run = run_of(command=("pytest", "train.py"))
    blocks = advice_blocks((TRY,), Reading(run).told, "train.py:4", brief=True)
    text = "\n".join(plain(b.words) for b in blocks if isinstance(b, Paragraph))
    assert "unverified: `compilescope fix` runs scripts and modules, not pytest" in text
    assert "can verify it" not in text


def test_of_a_log_one_verdict_stands_everywhere() -> None:
    """`logs --script` ran the program: what its script's head says of a fix, its advice says."""

    def told(*bodies: Body) -> str:
        events = (event(body, number=n) for n, body in enumerate(bodies, 1))
        reading = Reading(run_of(*events, command=("compilescope", "logs", "a.log")))
        verified = any(isinstance(b, FixAttempt) and b.verdict == "verified" for b in bodies)
        status = "proven" if verified else "proposed"
        advice = msgspec.structs.replace(TRY, status=status)
        blocks = advice_blocks((advice,), reading.told, "m.py:2", brief=True)
        return "\n".join(plain(b.words) for b in blocks if isinstance(b, Paragraph))

    log = LogRead("a.log")
    assert "logs --script FILE can verify it" in told(log).replace("`", "")
    done = FixAttempt("a-fix", "a change", "verified", kept=True)
    assert "verified by running the program here" in told(log, done)
    no_run = "the program could not be run here: no such file."
    tried = FixAttempt("a-fix", "a change", "unverified", reason=no_run, kept=True)
    assert f"unverified: {no_run.rstrip('.')}" in told(log, tried)
    other = FixAttempt("another", "a change", "unverified", reason=no_run)
    assert "could not be run" not in told(log, other)
