"""The MOCK_* environment variables, which configure a program's mock backends."""

from __future__ import annotations

from compilescope.settings import current_environment


def mock_variables() -> dict[str, str]:
    """The MOCK_* variables."""
    env = current_environment()
    return {name: value for name, value in env.items() if name.startswith("MOCK_")}


def names_mock_rules() -> bool:
    """Does one of them say what to check?"""
    given = mock_variables()
    return any(given.get(name, "").strip() for name in ("MOCK_ALIGNMENT", "MOCK_MAX_MEMORY"))
