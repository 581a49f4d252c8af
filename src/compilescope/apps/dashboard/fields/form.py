"""A form: fields, and the command line that they stand for."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilescope.apps.dashboard import forms
from compilescope.apps.dashboard.fields.choices import missing
from compilescope.apps.dashboard.fields.kinds import (
    Field,
    FormPlace,
    Number,
    ProgramArguments,
    WrongValue,
    read_field,
)
from compilescope.base.errors import ToolError
from compilescope.base.plugins import discover

Values = Mapping[str, Any]
Check = Callable[[Values], Iterator[tuple[str, str]]]
Writes = Callable[[Values], Iterator[Path]]

LIMIT = Field(
    "limit_minutes",
    "Minutes",
    Number(above=True),
    help="The job is stopped after this long. Not part of the command. [default: none]",
    on_line=False,
)


@dataclass(frozen=True)
class Group:
    """Fields that belong together."""

    title: str
    fields: tuple[Field, ...]
    more: bool = False
    """Most people don't need them: they are folded."""


def _nothing_wrong(values: Values) -> Iterator[tuple[str, str]]:
    yield from ()


def _nothing_written(values: Values) -> Iterator[Path]:
    yield from ()


@dataclass(frozen=True)
class Form:
    """One module of `dashboard.forms`."""

    id: str
    """In its address."""
    order: int
    title: str
    about: str
    """A sentence for who has to choose."""
    command: tuple[str, ...]
    """The words that the command line begins with."""
    groups: tuple[Group, ...]
    home_option: str = "--dir"
    """How the command is told where runs are stored; empty: it stores none."""
    separator: str = ""
    """Stands before the program's arguments where the command would take some for its own."""
    check: Check = _nothing_wrong
    """What fields say of each other: the name of one, and what is wrong with it."""
    writes: Writes = _nothing_written
    """Files that the command writes."""
    needs: tuple[tuple[str, str], ...] = (("torch", "torch"),)
    """Packages, and the extras that bring them."""
    exits: Mapping[int, str] = field(default_factory=dict)
    """What its exit statuses mean."""

    @property
    def all_groups(self) -> tuple[Group, ...]:
        return (*self.groups, Group("Time limit", (LIMIT,), more=True))

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for group in self.all_groups for field in group.fields)

    @property
    def problem(self) -> str:
        """Why it can't be used here; empty: it can."""
        lacking = missing(self.needs)
        if lacking is None:
            return ""
        package, extra = lacking
        return f'This needs {package}. Install it with: pip install "compilescope[{extra}]"'


@dataclass(frozen=True)
class FilledForm:
    """A form with what somebody typed."""

    form: Form
    given: Mapping[str, Sequence[str]]
    values: Mapping[str, Any]
    errors: Mapping[str, str]
    home: Path

    @property
    def words(self) -> list[str]:
        """After `compilescope`. What is missing or wrong stands there in capitals."""
        form = self.form
        words = list(form.command)
        if form.home_option:
            words += [form.home_option, str(self.home)]
        on_line = [field for field in form.fields if field.on_line]
        for each in on_line:
            if each.option:
                words += self._words(each)
        for each in on_line:
            if not each.option:
                words += self._words(each)
        return words

    @property
    def cwd(self) -> Path | None:
        """Where the command is to be run: beside the program. None: anywhere."""
        for each in self.form.fields:
            value = self.values.get(each.name)
            if each.kind.control == "script" and isinstance(value, str):
                path = Path(value.rpartition(":")[0] if ".py:" in value else value)
                return path if path.is_dir() else path.parent
        return None

    @property
    def subject(self) -> str:
        """What the command is about, in a word or two."""
        found = next((self.values[f.name] for f in self.form.fields if f.name in self.values), "")
        texts = found if isinstance(found, list) else [str(found)]
        return ", ".join(text if "/" not in text else Path(text).name for text in texts)

    @property
    def line(self) -> str:
        """To type in a terminal."""
        command = shlex.join(["compilescope", *self.words])
        return command if self.cwd is None else f"cd {shlex.quote(str(self.cwd))} && {command}"

    @property
    def writes(self) -> list[str]:
        """Files that it is going to write."""
        return list(map(str, self.form.writes(self.values)))

    @property
    def limit_s(self) -> float | None:
        minutes = self.values.get(LIMIT.name)
        return None if minutes is None else float(minutes) * 60

    def _words(self, each: Field) -> list[str]:
        value = self.values.get(each.name)
        if value is None:
            option = [each.option] if each.option else []
            waited_for = each.required or each.name in self.errors
            return [*option, each.name.upper()] if waited_for else []
        if each.default and [text.strip() for text in self.given[each.name]] == [each.default]:
            return []
        words = each.kind.words(each.option, value)
        if isinstance(each.kind, ProgramArguments) and self.form.separator and words:
            return [self.form.separator, *words]
        return words


def fill(form: Form, given: Mapping[str, Sequence[str]], place: FormPlace) -> FilledForm:
    """Check all of it. Fields that the form doesn't have are an error."""
    known = {each.name: each for each in form.fields}
    for name in given:
        if name not in known:
            raise ToolError(f"The form {form.id!r} has no field {name[:80]!r}.")
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for each in form.fields:
        try:
            value = read_field(each, given.get(each.name, ()), place)
            if value is not None:
                values[each.name] = value
        except WrongValue as wrong:
            errors[each.name] = str(wrong)
    for name, sentence in form.check(values):
        errors.setdefault(name, sentence)
    return FilledForm(form, given, values, errors, place.home)


def all_forms() -> list[Form]:
    return sorted(discover(forms, "FORM", Form), key=lambda form: form.order)
