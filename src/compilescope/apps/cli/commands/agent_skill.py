"""`compilescope agent-skill`: an instruction file with which a coding agent can use this tool.

Commands come from the command line itself; keys and statuses are tables here, which tests compare
with what the commands really print.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.apps.cli.options import write_whole
from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION

GROUP = "Share"


@click.command(
    "agent-skill", short_help="Print an instruction file that teaches a coding agent this tool."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it to FILE, for example SKILL.md in your agent's skills folder.",
)
@click.option("--force", is_flag=True, help="For --output: overwrite FILE.")
def COMMAND(output: Path | None, force: bool) -> None:
    """Print a Markdown file with front matter (name, description): when to use compilescope, the
    commands, their JSON keys and exit statuses, and what to do with each verdict."""

    if output is None:
        if force:
            raise ToolError("--force needs --output.")
        sys.stdout.write(skill_text())
        return
    if output.exists() and not force:
        raise ToolError(f"{output} already exists.", hint="Use --force to overwrite it.")
    if not output.absolute().parent.is_dir():
        raise ToolError(f"Cannot write {output}: there is no folder {output.parent}.")
    write_whole(output, skill_text())
    print(output)


_DESCRIPTION = (
    "Find and fix graph breaks, recompiles, eager fallbacks and compiler errors of torch.compile "
    "with the compilescope command. Use it when a PyTorch program compiles slowly, recompiles, "
    "breaks graphs, crashes under torch.compile or gives different numbers when compiled, and to "
    "verify a change to compiled code."
)

KEYS: dict[str, dict[str, str]] = {
    "run --json": {
        "run": "ID of the recording; give it to the other commands",
        "exit_status": "how the program ended; null if a signal ended it",
        "graphs": "graphs captured; ideally one for each of `regions`",
        "regions": "compiled functions that the program entered",
        "sites": "graph breaks, most expensive first",
        "recompiles": "functions that were compiled again, each with its `causes`",
        "eager_frames": "functions that fell back to eager, with `reason`",
        "failures": "compilations that failed, with `error` and `message`",
        "hidden_breaks_possible": "true: there may be more breaks than `sites` lists",
        "compile_seconds": "time spent compiling",
        "cut_short": "true: the recording is incomplete, so draw no conclusion from what is absent",
    },
    "run --json, each of `sites`": {
        "gb_id": "PyTorch's ID of the graph break; `compilescope registry show GB0170` explains it",
        "file": "absolute path",
        "line": "from 1",
        "source": "the line",
        "why": "the cause at this line",
        "advice": "what to change, best first: `fix`, `status`, `diff`, `text`",
        "consequence_of": "fingerprint of the break that it follows from; fix that one first",
    },
    "fix --json": {
        "run": "ID for `fix --apply`",
        "verdict": "of all kept fixes together: verified, rejected or unverified",
        "breaks_before": "graph breaks of the program as it is",
        "breaks_after": "graph breaks with the kept fixes",
        "recompiles_before": "recompiles of the program as it is",
        "recompiles_after": "recompiles with the kept fixes",
        "fixes": "every attempt: `file`, `line`, `fix`, `verdict`, `reason`, `kept`, `states`",
        "diff": "unified diff of the kept fixes",
        "left": "what is still there: `place` and `why`",
        "notes": "what limited the search, such as the time budget",
        "problem": "why a file that was asked for was not written; otherwise null",
    },
    "check --json": {
        "outcome": "pass, fail or unknown",
        "checks": "each limit: `name`, `outcome`, `found`, `limit`, `message`",
        "new": "causes that the baseline does not accept",
        "run": "ID of the recording",
    },
    "minify --json": {
        "repro": "path of the script; null if there is none",
        "reason": "why there is none, or why the script is not verified in a fresh process",
        "stopped": "empty, or what ended it early: time, calls, interrupt",
        "size_before": "size of the whole program",
        "size": "size of the repro",
    },
    "diff --json": {
        "verdict": "pass, fail or unknown",
        "reason": "why",
        "outputs": "each output by its path, with its own `verdict`",
        "guilty": "with --localize: the operations where the numbers diverge",
    },
}

STATUSES: dict[str, dict[int, str]] = {
    "run": {0: "the program's own exit status; look at the JSON for the diagnosis"},
    "fix": {
        0: "a fix is verified, or there is nothing to fix",
        1: "no fix could be verified",
        2: "the search could not run; stderr says why",
    },
    "check": {
        0: "within the limits",
        1: "a limit is exceeded, or something is new",
        2: "inconclusive",
    },
    "minify": {0: "a repro was written", 2: "no repro"},
    "diff": {0: "the numbers agree", 1: "they differ", 2: "inconclusive, or an error"},
}

_APPLIED = "proven"
"""The documented value of `advice[].status` for what `fix` verified."""

_BODY = """\
## When to use it

- The program uses `torch.compile`, `model.compile()` or `@torch.compile`, and it is slow to start,
  slow to run, or fails.
- You are about to change compiled code: record a run before and after.
- Not for eager-only programs, unless you want to try compilation: `--compile-all`.

## Tools instead of a shell

Does your client have the tools of `compilescope mcp` (`run`, `explain`, `fix`, ...)? Call those:
they answer typed values, and what follows about shells and JSON does not concern you. If not, a
person can add the server to the client: command `compilescope`, arguments `mcp --allow FOLDER`.

## Rules

1. Options of compilescope come before the script; what follows the script belongs to the program.
2. Pass `--json` and read the exit status first. `run --json` and `check --json` print JSON as the
   **last** line of stdout, after the program's own output; the other commands print only JSON.
3. `null` means unknown, never zero. `unknown` and `unverified` are not success.
4. Use a short run of the program: few steps, small data. `fix` and `minify` run it many times.
5. `fix` changes no file without `--write`, `--script` or `--apply`. Commit before you use them.
6. Report a fix as working only if its `verdict` is `verified`.

## Workflow

Diagnose:

```bash
compilescope run --json train.py --steps 3
compilescope explain --json RUN
```

Is `graphs` 0? See `eager_frames`. A program that never compiles needs `--compile-all`:

```bash
compilescope run --json --compile-all train.py
```

Let the tool search for verified fixes, then apply them:

```bash
compilescope fix --json --budget 10m train.py
compilescope fix --apply RUN
```

Restrict the search to one line, or leave your files alone and get a fixed copy:

```bash
compilescope fix --json --site model.py:42 train.py
compilescope fix --json --script train.py
```

Verify what you changed yourself: no more causes than before, and the same numbers:

```bash
compilescope compare --format md RUN_BEFORE RUN_AFTER
compilescope check --json --max-breaks 0 --max-recompiles 0 train.py
compilescope diff --json model.py:build
```

For `diff`, `build()` in model.py returns `(model, args)` or `(model, args, kwargs)`.

Something that cannot be fixed: make a small script for a bug report:

```bash
compilescope minify --json --budget 5m -o repro.py train.py
```

From a log of a run that you cannot repeat:

```bash
compilescope logs --json train.log
```

What a PyTorch message means:

```bash
compilescope registry show GB0170
```

## What to do with each answer

| answer | do |
|---|---|
| `advice[].status` is `{applied}` | apply its `diff`: it was verified on this program |
| `advice[].status` is `proposed` | run `fix` to verify it before you apply it |
| `advice[].status` is `by hand` | make the change that `text` describes, then record again |
| `sites[].consequence_of` is set | fix the break with that `fingerprint` first |
| `eager_frames[].cause` is `torch-module` | write `model = torch.compile(model)` instead |
| `fixes[].verdict` is `verified` and `kept` | part of `diff`; `states` says what users may notice |
| `fixes[].verdict` is `rejected` | do not apply it: it broke something, `reason` says what |
| `fixes[].verdict` is `unverified` | it could not be checked: ask a person, or check it by hand |
| `fix` exits with 1 | read `left`: those need a change of your own |
| `notes` mentions the time budget | run again with a larger `--budget` |
| `check` `outcome` is `fail` | read `checks` and `new`; fix, or accept with `--update-baseline` |
| `check` `outcome` is `unknown` | the program failed, or the recording is incomplete |
| `diff` `verdict` is `fail` | do not ship the change; `--localize` finds the operation |
| `diff` `verdict` is `unknown` | `reason` says what could not be compared |
| `minify` `repro` is set and `reason` is empty | verified: attach it to the bug report |
| exit status 2 | one sentence on stderr says what is wrong and what to do; do not retry unchanged |
"""


def skill_text() -> str:
    """The whole file."""
    parts = [
        f"---\nname: compilescope\ndescription: {_DESCRIPTION}\n---\n",
        f"# compilescope {VERSION}\n",
        _BODY.replace("{applied}", _APPLIED),
        "## JSON keys\n\nOnly the keys that you need most; docs/reference/json.md has all.\n",
        *(_table(name, keys) for name, keys in KEYS.items()),
        "## Exit statuses\n",
        _statuses(),
        "## All commands\n\n`compilescope COMMAND --help` shows the options.\n",
        _commands(),
    ]
    return "\n".join(parts)


def _table(name: str, keys: dict[str, str]) -> str:
    command, comma, part = name.partition(",")
    rows = "".join(f"| `{key}` | {words} |\n" for key, words in keys.items())
    return f"### `{command}`{comma}{part}\n\n| key | meaning |\n|---|---|\n{rows}"


def _statuses() -> str:
    rows = [
        f"| `{command}` | {status} | {words} |\n"
        for command, known in STATUSES.items()
        for status, words in known.items()
    ]
    common = (
        "| any | 2 | an error; stderr has one sentence |\n| any | 130 | stopped with Ctrl-C |\n"
    )
    return f"| command | status | meaning |\n|---|---|---|\n{''.join(rows)}{common}"


def _commands() -> str:
    from compilescope.apps.cli.main import group

    context = click.Context(group)
    lines = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            lines.append(f"- `compilescope {name}`: {command.get_short_help_str(120)}\n")
    return "".join(lines)
