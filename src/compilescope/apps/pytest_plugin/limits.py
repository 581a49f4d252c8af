"""The hooks around tests with limits, and around those that use the fixture.

Registered when the first such test is collected. A test is watched from the setup of its fixtures
to the end of its call, and judged there: a limit that is exceeded is an ordinary failure.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import pytest

from compilescope.apps.pytest_plugin.marker import TestLimits, read_marker
from compilescope.apps.pytest_plugin.session import SessionPlugin
from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION
from compilescope.record.header import RunHeader
from compilescope.record.home import new_run_id

if TYPE_CHECKING:
    from compilescope.apps.pytest_plugin.window import Window

_MOST_WRONG = 5
"""Chosen: what is read at a glance; the rest is counted."""


class LimitsPlugin:
    """Opens a window on each test that wants one, and holds it against the test's limits."""

    NAME = "compilescope-limits"

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._windows: dict[pytest.Item, Window] = {}

    def check_markers(self, items: Iterable[pytest.Item]) -> None:
        """Say what is wrong with markers before any test runs."""
        if hasattr(self._config, "workerinput"):
            return  # A worker cannot tell its user but by a test: each fails in its setup.
        wrong = [fault for fault in map(_fault_of_marker, items) if fault]
        more = [f"and {len(wrong) - _MOST_WRONG} more"] if len(wrong) > _MOST_WRONG else []
        if wrong:
            raise pytest.UsageError("\n".join([*wrong[:_MOST_WRONG], *more]))

    def window(self, item: pytest.Item) -> Window:
        """The window on this test: the one that is open, or a new one."""
        if item not in self._windows:
            self._windows[item] = self._open(item, read_marker(item))
        return self._windows[item]

    def _open(self, item: pytest.Item, limits: TestLimits | None) -> Window:
        torch = _torch()
        if isinstance(torch, ImportError):
            pytest.fail(f"compilescope cannot check this test without torch: {torch}", False)
        from compilescope.apps.pytest_plugin.window import Window

        # What an earlier test compiled is not compiled again: without this, the outcome would hang
        # on the order of the tests.
        if (limits is None or limits.fresh) and "torch._dynamo" in sys.modules:
            torch.compiler.reset()
        session = self._config.pluginmanager.get_plugin(SessionPlugin.NAME)
        header = RunHeader(
            run=new_run_id(item.name),
            tool=VERSION,
            command=("pytest", item.nodeid),
            cwd=os.getcwd(),
            root=str(self._config.rootpath),
            started_ns=time.time_ns(),
        )
        timed = limits is not None and limits.limits.coverage is not None
        return Window(header, session.journal if session else None, time=timed)

    # Plain hooks run after pytest has looked at skip marks, and before fixtures are set up.
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._close(item)
        wrong = _fault_of_marker(item)
        if wrong:
            pytest.fail(wrong, pytrace=False)
        if read_marker(item) or "compilescope_run" in getattr(item, "fixturenames", ()):
            self.window(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            result = yield
        finally:
            window = self._windows.get(item)
            if window is not None:
                window.close()
        limits = read_marker(item)
        if limits is not None:
            if window is None:
                pytest.fail(
                    "compile_limits was added after the test had begun: inconclusive.", False
                )
            from compilescope.apps.pytest_plugin.summary import shortfall

            words = shortfall(window.run(), limits)
            if words:
                pytest.fail(words, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            self._close(item)

    def _close(self, item: pytest.Item) -> None:
        window = self._windows.pop(item, None)
        if window is not None:
            window.close()


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        return error
    return torch


def _fault_of_marker(item: pytest.Item) -> str:
    try:
        read_marker(item)
    except ToolError as error:
        return error.message
    return ""


def limits_plugin(config: pytest.Config) -> LimitsPlugin:
    """The one of this session, registered when it is first asked for."""
    plugin = config.pluginmanager.get_plugin(LimitsPlugin.NAME)
    if plugin is None:
        plugin = LimitsPlugin(config)
        config.pluginmanager.register(plugin, LimitsPlugin.NAME)
    return plugin
