"""How many of how many: findings, those with a diff, those whose diff holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from advice.kinds import is_mechanical
from advice.trying import RESULTS, Tried

_REASON = re.compile(r"No automatic fix: (.*?)(?:[:;.] |\.$)", re.DOTALL)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    findings: int
    results: Counter[str]
    mechanical: int
    mechanical_with_diff: int

    @property
    def with_diff(self) -> int:
        return self.findings - self.results["no diff"]

    @property
    def cells(self) -> tuple[str, ...]:
        share = f"{self.mechanical_with_diff} of {self.mechanical}"
        if self.mechanical:
            share += f" ({100 * self.mechanical_with_diff / self.mechanical:.0f} %)"
        wrong = [str(self.results[name] or "") for name in RESULTS[2:]]
        held = self.results["held"]
        return (self.name, str(self.findings), str(self.with_diff), str(held), *wrong, share)


HEAD = (
    "",
    "findings",
    "with a diff",
    "held",
    *RESULTS[2:],
    "mechanical kind, with a diff",
)


def row_of(name: str, tried: Iterable[Tried]) -> Row:
    each = list(tried)
    mechanical = [one for one in each if is_mechanical(one)]
    return Row(
        name=name,
        findings=len(each),
        results=Counter(one.result for one in each),
        mechanical=len(mechanical),
        mechanical_with_diff=sum(one.result != "no diff" for one in mechanical),
    )


def rows_by(tried: Iterable[Tried], key: Callable[[Tried], str]) -> list[Row]:
    """One for each key, most findings first, and the sum of all."""
    groups: dict[str, list[Tried]] = {}
    every = list(tried)
    for one in every:
        groups.setdefault(key(one), []).append(one)
    rows = [row_of(name, group) for name, group in groups.items()]
    return [*sorted(rows, key=lambda row: (-row.findings, row.name)), row_of("all", every)]


def reasons(tried: Iterable[Tried]) -> Counter[str]:
    """Why findings have no diff."""
    return Counter(reason_of(one) for one in tried if one.result == "no diff")


def reason_of(one: Tried) -> str:
    """In one clause; names in backticks are left out, so that like reasons count together."""
    refused = _REASON.match(one.words)
    if refused:
        return "a fix refuses: " + re.sub(r"`[^`]*`", "`...`", refused[1])
    if one.advice.fix is not None:
        return f"{one.advice.fix}: a person has to decide, or another file would change"
    return f"no fix speaks of {one.rule}" if one.own else "code of an installed package"
