"""What tests of the advice share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from advice.running import WarmProcess


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    """For all files: it takes longer to start than most programs to run, and each is a fork."""
    with WarmProcess() as process:
        yield process
