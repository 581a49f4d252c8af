"""What a test may expect of this torch: asks the table of capabilities, compares no version."""

from __future__ import annotations

from importlib.metadata import version

from compilescope.registry.capabilities import load_capabilities


def expected(capability: str) -> bool:
    """Has this torch it? By the record, which needs no torch and which a test compares with what is
    detected; where the record doesn't know this torch, what is detected decides."""
    record = load_capabilities()
    there = record.of(version("torch"))
    if there is not None and capability in record.seen:
        return capability in there
    if capability.startswith("example/"):
        return True
    from compilescope.torchapi.capabilities import has

    return has(capability)
