"""What tests of repairs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compilescope.change.repair.trials.warm.parent import WarmParent


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmParent]:
    """For the trials of all programs; it takes longer to start than most of them to run."""
    with WarmParent() as parent:
        yield parent
