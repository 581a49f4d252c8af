"""What the environment asks for, and what is said where that cannot be."""

from __future__ import annotations

import pytest

from compilescope.errors import ToolError
from compilescope.settings import MockSettings, read_mock_settings


def test_nothing_set_means_the_documented_defaults() -> None:
    assert read_mock_settings({}) == MockSettings(True, 1, "16 GiB")
    empty = {"MOCK_STRICT": "", "MOCK_ALIGNMENT": " ", "MOCK_MAX_MEMORY": ""}
    assert read_mock_settings(empty) == MockSettings(True, 1, "16 GiB")


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
