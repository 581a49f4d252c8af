"""The entry point of the pytest plugin: its options, its marker and its fixture.

Loaded in every pytest run of everyone who has compilescope installed, so it imports nothing but
pytest until one of them is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from compilescope.apps.front import Capture

_MARKER = (
    "compile_limits(breaks=, recompiles=, graphs=, eager=, failures=, coverage=, own=False, "
    "fresh=True, allow_nothing=False): fail the test if it exceeds these limits on "
    "torch.compile; without limits, fail on any graph break, recompile, eager fallback or "
    "failed compilation."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(
        "compilescope", "compilescope: torch.compile graph breaks and recompiles"
    )
    group.addoption(
        "--compilescope",
        action="store_true",
        help=(
            "Record what torch.compile does in the tests, and list tests with graph breaks or "
            "recompiles."
        ),
    )
    group.addoption(
        "--compilescope-dir",
        metavar="DIR",
        help="Folder for runs. [default: .compilescope, or COMPILESCOPE_DIR]",
    )
    group.addoption(
        "--compilescope-check",
        action="store_true",
        help="Like --compilescope, and fail if the whole run exceeds the limits in "
        "[tool.compilescope] of pyproject.toml, or has a cause that its baseline does not "
        "accept.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("compilescope") or config.getoption("compilescope_check"):
        _need_recent_pytest()
        from compilescope.apps.pytest_plugin.session import SessionPlugin

        config.pluginmanager.register(SessionPlugin(config), SessionPlugin.NAME)


def pytest_collection_finish(session: pytest.Session) -> None:
    if any(_is_watched(item) for item in session.items):
        _need_recent_pytest()
        from compilescope.apps.pytest_plugin.limits import limits_plugin

        limits_plugin(session.config).check_markers(session.items)


def _is_watched(item: pytest.Item) -> bool:
    return item.get_closest_marker("compile_limits") is not None or "compilescope_run" in getattr(
        item, "fixturenames", ()
    )


def _need_recent_pytest() -> None:
    # Said only when it matters: an old pytest is fine for those who use none of this.
    if pytest.version_tuple < (8,):
        raise pytest.UsageError(
            f"compilescope's plugin needs pytest 8 or newer; this is {pytest.__version__}."
        )


@pytest.fixture
def compilescope_run(request: pytest.FixtureRequest) -> Iterator[Capture]:
    """What torch.compile did in this test so far: `.breaks`, `.recompiles`, `.graphs` and more."""
    from compilescope.apps.pytest_plugin.limits import limits_plugin

    yield limits_plugin(request.config).window(request.node).capture
