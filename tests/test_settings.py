"""What the environment asks for, and what is said where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.base.settings import MockSettings, read_mock_settings, state_folder


def test_nothing_set_means_the_documented_defaults() -> None:
    assert read_mock_settings({}) == MockSettings()
    names = (
        "MOCK_STRICT",
        "MOCK_ALIGNMENT",
        "MOCK_ALIGNMENT_DIMS",
        "MOCK_MAX_MEMORY",
        "MOCK_MAX_PEAK_MEMORY",
    )
    assert read_mock_settings(dict.fromkeys(names, " ")) == MockSettings()


@pytest.mark.parametrize(
    ("text", "strict"), [("1", True), ("0", False), ("TRUE", True), ("off", False), (" no ", False)]
)
def test_strict_is_said_in_several_ways(text: str, strict: bool) -> None:
    assert read_mock_settings({"MOCK_STRICT": text}).strict is strict


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MOCK_STRICT", "maybe"),
        ("MOCK_STRICT", "2"),
        ("MOCK_ALIGNMENT", "0"),
        ("MOCK_ALIGNMENT", "-8"),
        ("MOCK_ALIGNMENT", "1.5"),
        ("MOCK_ALIGNMENT", "9" * 40),
        ("MOCK_ALIGNMENT", "sixteen"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence(name: str, text: str) -> None:
    with pytest.raises(ToolError) as error:
        read_mock_settings({name: text})
    assert error.value.message.startswith(f"{name} is {text!r}; it must ")
    assert "\n" not in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("state", "home", "expected"),
    [
        ("/state", "/home/ada", "/state/compilescope"),
        ("state", "/home/ada", "/home/ada/.local/state/compilescope"),
        ("", "ada", "/dev/null/.local/state/compilescope"),
    ],
)
def test_what_is_kept_for_a_user_has_one_place(
    state: str, home: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In no case is it below the folder that the program runs in."""
    monkeypatch.setenv("XDG_STATE_HOME", state)
    monkeypatch.setenv("HOME", home)
    assert state_folder() == Path(expected)
