"""The form of `preflight`: check a program's graphs against devices."""

from collections.abc import Iterator
from dataclasses import replace

from compilescope.apps.dashboard.fields.choices import devices
from compilescope.apps.dashboard.fields.form import Form, Group, Values
from compilescope.apps.dashboard.fields.kinds import Checks, Field, OneOf
from compilescope.apps.dashboard.fields.shared import (
    ARGUMENTS,
    COMPILED,
    RUN,
    SCRIPT,
    DeviceName,
    check_compiled,
    check_program,
)


def _check(values: Values) -> Iterator[tuple[str, str]]:
    yield from check_program(values)
    yield from check_compiled(values)
    if not values.get("devices") and not values.get("device_file"):
        yield "devices", "Choose at least one device, or give a file."


FORM = Form(
    id="preflight",
    order=70,
    title="Check against a device",
    about="See what a device would not support, without having the device.",
    command=("preflight",),
    groups=(
        Group("Program", (replace(SCRIPT, required=False), ARGUMENTS, RUN)),
        Group(
            "Devices",
            (
                Field("devices", "Devices", Checks(devices), "--device"),
                Field(
                    "device_file",
                    "A device of your own",
                    DeviceName(devices),
                    "--device",
                    help="A .toml file in one of the folders you allowed.",
                ),
                Field(
                    "fail_on",
                    "Fails on",
                    OneOf(("error", "warning")),
                    "--fail-on",
                    help="Lowest severity that fails.",
                    default="error",
                ),
            ),
        ),
        COMPILED,
    ),
    separator="--",
    check=_check,
    exits={
        0: "The devices support everything.",
        1: "Something is not supported.",
        2: "Inconclusive, or an error.",
    },
)
