"""A fingerprint survives what does not matter and changes with what does."""

from __future__ import annotations

import msgspec

from builders import ROOT, frame
from compilescope.record.fingerprint import fingerprint


def test_line_numbers_spacing_and_machines_do_not_matter() -> None:
    here = fingerprint("rule", frame(8), ROOT)
    assert here == fingerprint("rule", frame(99), ROOT)
    assert here == fingerprint("rule", frame(8, source="if   h.mean() > 0:"), ROOT)
    moved = msgspec.structs.replace(frame(8), file="/mnt/job/model.py")
    assert here == fingerprint("rule", moved, "/mnt/job")


def test_rule_function_and_line_matter() -> None:
    here = fingerprint("rule", frame(8), ROOT)
    assert here != fingerprint("other", frame(8), ROOT)
    assert here != fingerprint("rule", frame(8, function="backward"), ROOT)
    assert here != fingerprint("rule", frame(8, source="if h.sum() > 0:"), ROOT)


def test_installed_code_is_named_from_its_package() -> None:
    one = frame(8, file="/a/lib/python3.11/site-packages/timm/models/vit.py")
    two = frame(8, file="/b/lib/python3.12/site-packages/timm/models/vit.py")
    assert fingerprint("rule", one, "/a") == fingerprint("rule", two, "/x")
