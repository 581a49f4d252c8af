"""The digest in which only drawn causes are explained: as the whole one, for a fraction of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis import findings as findings_module
from compilescope.knowledge.analysis.compile_shares import compile_shares
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import by_cost, findings
from compilescope.knowledge.analysis.line_costs import costliest_files, file_losses
from compilescope.knowledge.analysis.partial_digest import digest_of_drawn
from compilescope.knowledge.findings.breaks import break_sites
from compilescope.knowledge.rules.causes.explanations import sites_with_roots
from compilescope.knowledge.source import spots as source
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileFailed,
    FailedGuard,
    GraphBreak,
    Recompile,
    SourceSeen,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report import section

TEXT = """
def f(x, ys):
    if x.mean() > 0:
        print(x)
    return [y.item() for y in ys]
"""
FILES = 30


def _file(number: int) -> str:
    return f"{ROOT}/part_{number}.py"


def _events(number: int) -> list[Event]:
    """Of one file: a branch, a print, an echo in a comprehension, a recompile and a failure."""
    file = _file(number)
    code = CodeRef(file, 2, "f")
    lines = TEXT.splitlines()

    def at(line: int, column: int, end: int) -> dict[str, object]:
        place = frame(
            line,
            file=file,
            function="f",
            column=column,
            end_column=end,
            source=lines[line - 1],
        )
        return {"stack": (place,), "compile_id": f"{number}/0"}

    failed = FailedGuard(
        "x.size()[0] == 2", "x.size()[0]", "2", "3", "TENSOR_MATCH", frame(3, file=file)
    )
    missed = CacheEntryMiss(f"{number}/0", (failed,))
    given_up = {"outcome": "frame-eager", "frame": code}
    return [
        event(GraphBreak("Data-dependent branching", "GB0170", **given_up), **at(3, 4, 26)),
        event(GraphBreak("Unsupported print", None, **given_up), **at(4, 8, 16)),
        event(GraphBreak("Reconstruction failure", "GB0092", frame=code), **at(5, 11, 33)),
        event(Recompile(code, (missed,)), **at(2, 0, 5)),
        event(
            CompileFailed("RuntimeError", f"no {number}", frame=code),
            **{**at(5, 12, 20), "compile_id": f"{number}/9"},
        ),
    ]


@pytest.fixture
def run() -> Run:
    made = [each for number in range(FILES) for each in _events(number)]
    seen = run_of(
        *(msgspec.structs.replace(each, time_ns=n) for n, each in enumerate(made)),
        *(event(SourceSeen(_file(number), "")) for number in range(FILES)),
    )
    # Each file has a text of its own: one that lies in many is parsed once.
    for number in range(FILES):
        kept = seen.artifacts.put(f"{TEXT}# {number}\n", "py")
        seen._kept_sources[_file(number)] = kept
    return seen


@pytest.mark.parametrize("numbers", [range(1, 41), [95], []])
def test_drawn_causes_are_those_of_the_whole_digest(run: Run, numbers: Sequence[int]) -> None:
    whole, brief = (
        by_cost(findings(each)) for each in (digest(run), digest_of_drawn(run, numbers).digest)
    )
    assert [each.fingerprint for each in brief] == [each.fingerprint for each in whole]
    assert [each.level for each in brief] == [each.level for each in whole]
    for number, (one, other) in enumerate(zip(brief, whole, strict=True), 1):
        assert number not in numbers or one == other


def test_all_drawn_is_the_whole_digest(run: Run) -> None:
    assert digest_of_drawn(run, range(1, 1_000)).digest == digest(run)


def test_all_of_a_drawn_file_is_as_in_the_whole_digest(run: Run) -> None:
    whole, seen = digest(run), digest_of_drawn(run, range(1, 5), 4, 3).digest
    drawn = {
        each.file
        for found in (by_cost(findings(whole)), whole.sites, whole.recompiles, whole.failures)
        for each in found[:4]
    }
    assert 0 < len(drawn) < FILES
    for one, other in (
        (seen.sites, whole.sites),
        (seen.recompiles, whole.recompiles),
        (seen.failures, whole.failures),
    ):
        assert [each.because for each in one] == [each.because for each in other]
        assert [each for each in one if each.file in drawn] == [
            each for each in other if each.file in drawn
        ]
    assert sum(site.category == "" for site in seen.sites) > len(whole.sites) / 2
    assert digest_of_drawn(run, range(1, 5), 4, FILES).digest == whole


def test_a_page_of_a_long_run_explains_what_its_sections_draw(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilescope.knowledge.analysis.partial_digest._LONG", 10)
    monkeypatch.setattr(section, "MOST_ITEMS", 4)
    monkeypatch.setattr(section, "MOST_FILES", 3)

    def unexplained(**how: bool) -> int:
        return sum(site.category == "" for site in section.Reading(run, **how).digest.sites)

    assert unexplained(full=True, page=True) > 0
    assert unexplained(page=True) == 0  # `explain` draws every cause.
    assert unexplained(full=True) == 0  # JSON and SARIF have all.


def test_a_guard_of_another_file_is_explained_with_its_function(run: Run) -> None:
    failed = FailedGuard(
        "x.size()[0] == 2", "x.size()[0]", "2", "3", "TENSOR_MATCH", frame(3, file=_file(0))
    )
    again = Recompile(CodeRef(f"{ROOT}/far.py", 2, "g"), (CacheEntryMiss("90/0", (failed,)),))
    far = run_of(*run.events, event(again, number=10_000))
    seen = digest_of_drawn(far, [1], 1).digest
    assert [each for each in seen.recompiles if each.file.endswith("far.py")] == [
        each for each in digest(far).recompiles if each.file.endswith("far.py")
    ]
    assert sum(cause.why == "" for each in seen.recompiles for cause in each.causes) > FILES / 2


def test_only_files_of_drawn_causes_and_of_echoes_are_parsed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(source, "_parse", lambda text: parsed.append(text or ""))
    digest_of_drawn(run, [])
    echoes = sum(site.consequence_of is not None for site in digest(run, explained=False).sites)
    assert 0 < len(parsed) <= 2 * echoes  # By each of the two digests here.
    parsed.clear()
    digest(run)
    assert len(parsed) >= FILES


def test_files_beyond_what_is_kept_are_parsed_once_by_each_rule_set(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parsed = digest(run), []
    parse = source._parse
    monkeypatch.setattr(source, "_parse", lambda text: (parsed.append(text), parse(text))[1])
    monkeypatch.setattr(source, "_MOST_LETTERS", 10 * len(TEXT))
    assert digest(run) == whole
    # By breaks, by recompiles, by failures; and those that were being looked at when it began anew.
    assert len(parsed) <= 4 * FILES


def test_each_echo_has_the_root_that_a_search_through_all_finds(run: Run) -> None:
    sites = sites_with_roots(break_sites(run), Sources(run))
    echoes = [each for each in sites if each.consequence_of is not None]
    assert len(echoes) == FILES
    roots = [each for each in sites if each.consequence_of is None]
    for echo in echoes:
        here = [each for each in roots if each.file == echo.file and each.gave_up]
        assert echo.consequence_of == here[-1].fingerprint


def test_what_is_one_cause_is_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each: their events would be copied as often."""
    code = [CodeRef(f"{ROOT}/model.py", line, "<lambda>") for line in range(200)]
    failed = FailedGuard("n == 2", "n", "2", "3", "CONSTANT_MATCH")
    run = run_of(
        *(
            event(Recompile(each, (CacheEntryMiss("0/0", (failed,)),)), number=n)
            for n, each in enumerate(code)
        )
    )
    joined: list[int] = []
    merge = findings_module._joined
    monkeypatch.setattr(
        findings_module, "_joined", lambda found: (joined.append(len(found)), merge(found))[1]
    )
    (found,) = findings(digest(run))
    assert joined == [200]
    assert found.count == len(found.because) == 200
    assert compile_shares(run, digest(run)) == []


def _generated(breaks: int) -> Run:
    """One file in which every line breaks: the last line costs most."""
    file, line = _file(0), "    x.item()"
    text = "def f(x):\n" + f"{line}\n" * breaks
    seen = run_of(
        *(
            event(
                GraphBreak(f"Type {n}", None, frame=CodeRef(file, 1, "f")),
                number=10 * n + again,
                stack=(
                    frame(n + 2, file=file, function="f", column=4, end_column=12, source=line),
                ),
                compile_id=f"{n}/0",
            )
            for n in range(breaks)
            for again in range(1 + (n == breaks - 1))
        ),
        event(SourceSeen(file, ""), number=10_000),
    )
    seen._kept_sources[file] = seen.artifacts.put(text, "py")
    return seen


def test_of_very_many_entries_in_a_file_the_first_and_the_worst_are_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _generated(9)
    whole = digest(run)
    # As many as someone writes: all of them.
    assert digest_of_drawn(run, [1], 1, 1).digest == whole
    monkeypatch.setattr("compilescope.knowledge.analysis.partial_digest._MOST_OF_FILE", 3)
    seen = digest_of_drawn(run, range(1, 6), 5, 1).digest
    assert [each.because for each in seen.sites] == [each.because for each in whole.sites]
    explained = [one == other for one, other in zip(seen.sites, whole.sites, strict=True)]
    assert explained == [True] * 5 + [False] * 4


def test_what_stands_beside_a_drawn_break_is_explained() -> None:
    """A fix may change all that Dynamo stopped at in a function."""
    run = _generated(9)
    assert digest_of_drawn(run, [1]).digest.sites == digest(run).sites


@pytest.mark.parametrize("most", [1, 3, FILES, 2 * FILES])
def test_the_costliest_files_are_those_that_a_page_shows_first(run: Run, most: int) -> None:
    seen = digest(run)
    assert costliest_files(seen, most) == {each.file for each in file_losses(seen)[:most]}
