"""What `fix` says of each attempt."""

from __future__ import annotations

from compilescope.report.fix_search import FixSearchView, fixing_document
from compilescope.report.render.terminal import to_text
from repair.delivery.outcomes import attempt


def drawn(**fields: object) -> str:
    fixing = FixSearchView(
        title="compilescope fix", subtitle="", headline=(), attempts=(attempt(**fields),)
    )
    return to_text(fixing_document(fixing))


def test_the_reason_of_one_that_is_not_used_is_also_told_where_it_is_what_would_change() -> None:
    text = "the output comes later"
    told = drawn(
        fix="a-fix", title="print later", verdict="rejected", kept=False, reason=text, states=text
    )
    assert "print later: The output comes later." in told


def test_no_reason_is_no_sentence() -> None:
    told = drawn(fix="a-fix", title="print later", verdict="rejected", kept=False, reason="")
    assert "print later" in told
    assert "reason" not in told
