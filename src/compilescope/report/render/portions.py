"""One bar of what a whole is made of: shares for a page, blocks of letters for a terminal."""

from __future__ import annotations

from typing import Any

from compilescope.report.blocks import Portion, Portions


def portion_values(block: Portions) -> dict[str, Any]:
    return {
        "shares": [(portion, f"{100 * part:.2f}") for portion, part in portion_shares(block)],
        "groups": portion_groups(block),
    }


def portion_groups(block: Portions) -> list[tuple[str, list[Portion]]]:
    """Neighbours of one group together; what has no group stands alone, under no name."""
    groups: list[tuple[str, list[Portion]]] = []
    for portion in block.portions:
        if portion.group and groups and groups[-1][0] == portion.group:
            groups[-1][1].append(portion)
        else:
            groups.append((portion.group, [portion]))
    return groups


def portion_shares(block: Portions) -> list[tuple[Portion, float]]:
    whole = sum(portion.amount for portion in block.portions) or 1.0
    return [(portion, portion.amount / whole) for portion in block.portions]


def portion_cells(block: Portions, width: int) -> list[tuple[Portion, int]]:
    """How many of `width` cells each gets: what is there at all gets one."""
    ends, whole = [], 0.0
    for _, part in portion_shares(block):
        whole += part
        ends.append(round(whole * width))
    starts = [0, *ends[:-1]]
    return [
        (portion, max(end - start, 1))
        for portion, start, end in zip(block.portions, starts, ends, strict=True)
    ]
