"""An option of ours that stands behind the program is the program's, and that is said."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from compilescope.apps.cli.program import ProgramCommand


@click.command(cls=ProgramCommand)
@click.option("--budget")
@click.option("--max-breaks")
@click.option("-q", "--quiet", is_flag=True)
@click.pass_obj
def search(words: object, **options: object) -> None:
    click.echo(repr(words))


@pytest.mark.parametrize(
    ("text", "before", "after", "named"),
    [
        ("print(1)", [], ["--budget", "5m"], ["--budget"]),
        ("print(1)", [], ["--budget=5m", "--max-breaks", "0"], ["--budget", "--max-breaks"]),
        ("print(1)", [], ["--epochs", "5"], []),
        ("print(1)", ["--budget", "5m"], [], []),
        ("print(1)", ["-q"], ["--budget", "5m"], []),
        ("print(1)", [], ["--", "--budget", "5m"], []),
        ("parser.add_argument('--budget')", [], ["--budget", "5m"], []),
        ("class Args:\n    max_breaks: int = 0", [], ["--max-breaks", "0"], []),
    ],
)
def test_it_is_said(
    text: str, before: list[str], after: list[str], named: list[str], tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(text)
    done = CliRunner().invoke(search, [*before, str(program), *after])
    assert done.exit_code == 0 and repr((str(program), *after))[1:-1] in done.stdout
    told = [line.split()[1] for line in done.stderr.splitlines()]
    assert told == named


def test_a_program_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    done = CliRunner().invoke(search, [str(tmp_path / "no.py"), "--budget", "5m"])
    assert done.exit_code == 0 and not done.stderr
