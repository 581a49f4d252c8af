"""`compilescope fix`: patches for what a program loses, each proven before it is offered."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import click

from compilescope.apps.cli.commands.fix.delivery import is_lost
from compilescope.apps.cli.commands.fix.model import LLM_NAMES, patch_options, read_model
from compilescope.apps.cli.llm import show_questions
from compilescope.apps.cli.options import (
    RUN_LIMIT_S,
    RUN_NAME,
    budget_option,
    delivery_options,
    dir_option,
    isolated_by_default_option,
    json_option,
    limit_option,
    python_option,
)
from compilescope.apps.cli.output import all_option
from compilescope.apps.cli.program import (
    ProgramCommand,
    Words,
    script_options,
    torchrun_option,
    verdict_of,
)
from compilescope.apps.cli.progress import ended_in_order
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.apps.cli.commands.fix.options import FixRequest
    from compilescope.change.repair.search.outcome import SearchResult

GROUP = "Fix"


class _FixCommand(ProgramCommand):
    takes_stdin = False
    # Not --output and --limit, which many a training script has itself.
    may_follow = frozenset(
        {
            *("write", "force", "script", "site", "rules", "safe_only", "isolated", "timed"),
            *("as_json", *LLM_NAMES),
        }
    )

    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        "What to write": ("write", "script", "output", "stored", "force"),
        "What to fix": ("run", "site", "rules", "safe_only"),
        "A language model": LLM_NAMES,
        "Time": ("budget", "limit", "timed"),
    }

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        others = (
            "-m MODULE [ARGS]...",
            "--torchrun [ARGS]...",
            "--run RUN",
            "--apply RUN",
            "--list",
        )
        for rest in ("SCRIPT [ARGS]...", *others):
            prefix = None if rest.startswith("SCRIPT") else "       "
            formatter.write_usage("compilescope fix", f"[OPTIONS] {rest}", prefix=prefix)


@click.command(
    "fix",
    cls=_FixCommand,
    short_help="Propose patches for graph breaks and recompiles, each verified by running it.",
    help="Run a program and try fixes for its graph breaks and recompiles, each in fresh "
    "processes. Only verified fixes are shown: the graph break or recompile is gone, "
    "nothing else gets worse, and the program computes and prints the same but for what is "
    "said of the fix, such as output that comes later. No file is "
    "changed without --write or --script.\n\n"
    "Everything after SCRIPT, -m, -c or --torchrun belongs to the program, except --write, "
    "--script, --force, --site, --rule, --safe-only, --isolated, --no-time, --llm and what begins "
    "with it, and --json, which may follow it. "
    "Everything after -- belongs to the program. The program runs many times: each run "
    "gets the same piped input, and its output is not shown.\n\n"
    "Exit status: 0 if a fix is verified or there is nothing to fix; 1 if no fix could be "
    "verified, or with --site or --rule, not for everything selected; 2 if the search "
    "could not run.",
)
@click.option("--write", is_flag=True, help="Change your own files, never installed packages.")
@click.option(
    "--script",
    is_flag=True,
    help="Write SCRIPT_fixed.py: the same program with all fixes, third-party code included.",
)
@delivery_options
@click.option(
    "--run", "run", type=RUN_NAME, metavar="RUN", help="Fix the program of a recorded run."
)
@click.option(
    "--apply",
    "stored",
    type=RUN_NAME,
    metavar="RUN",
    help="Change your files as an earlier search verified it, without a new search.",
)
@click.option("--site", metavar="FILE:LINE", help="Only fix this line.")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME",
    help="Only fix causes with this rule, graph-break ID or category, or only use the fix with "
    "this name.",
)
@click.option(
    "--safe-only", is_flag=True, help="Only use fixes that change nothing you can observe."
)
@click.option("--list", "repertoire", is_flag=True, help="List all fixes.")
@limit_option("one run of the program", RUN_LIMIT_S)
@budget_option("the whole search", "Fixes verified by then are shown.")
@isolated_by_default_option("--llm")
@patch_options
@click.option("--no-time", "timed", flag_value=False, default=True, help="Do not time the result.")
@script_options
@torchrun_option
@all_option
@python_option
@dir_option
@json_option
@click.pass_obj
def COMMAND(words: Words, /, **given: Any) -> int:
    return verdict_of(lambda: _done(words, given))


def _done(words: Words, given: dict[str, Any]) -> int:
    with ended_in_order(pausing=True):
        if given["stored"] is not None:
            return _apply(words, given)
        return _list(given) if given["repertoire"] else _fix(words, given)


def _list(given: dict[str, Any]) -> int:
    from compilescope.apps.cli.commands.fix.output import list_fixes

    list_fixes(as_json=given["as_json"], everything=given["everything"])
    return 0


def _apply(words: Words, given: dict[str, Any]) -> int:
    from compilescope.apps.cli.commands.fix.search import apply_run

    apply_run(words, given)
    return 0


def _fix(words: Words, given: dict[str, Any]) -> int:
    from compilescope.apps.cli.commands.fix.options import read_request, read_stdin
    from compilescope.apps.cli.commands.fix.output import tell
    from compilescope.apps.cli.commands.fix.search import searched
    from compilescope.apps.cli.progress import working
    from compilescope.change.repair.delivery.stored_fix import check_git

    model = read_model(given)
    given["isolated"] = model is not None if given["isolated"] is None else given["isolated"]
    request = read_request(words, given)
    if request.write and not request.force:
        check_git([request.main])
    stdin = read_stdin()
    with working("fix") as work:
        options = replace(
            request.options,
            stdin=stdin,
            progress=work.show,
            tell=work.tell,
            say=work.say,
            proposer=model,
        )
        request = replace(request, options=options)
        outcome, delivery = searched(request, _check_outcome, isolated=given["isolated"])
    if model is not None and model.wanted.llm_dry_run:
        show_questions(model.wanted, model.questions, as_json=given["as_json"])
        return 0
    if model is not None and not (model.asked or model.stopped):
        print(
            "compilescope: no cause is left to ask the model about: nothing was sent",
            file=sys.stderr,
        )
    if model is not None and model.stopped:
        outcome = replace(outcome, notes=(*outcome.notes, model.stopped))
    code = max(exit_code(outcome, request), 1 if delivery.problem else 0)
    tell(outcome, request, delivery, as_json=given["as_json"], code=code)
    return code


def _check_outcome(outcome: SearchResult, request: FixRequest) -> None:
    """Where there is nothing to show, one sentence is enough."""
    options = request.options
    if not is_lost(outcome) and not outcome.before.graphs and not options.compile_names:
        notes = [text for text in outcome.notes if "--compile-all" not in text]
        raise ToolError(
            " ".join(["The program compiled nothing, so there is nothing to fix.", *notes]),
            hint="If it never calls torch.compile, --compile-all compiles its outermost modules.",
        )
    if options.site is not None and not outcome.attempts and not outcome.notes:
        places = list(dict.fromkeys(each.place for each in outcome.left))
        raise ToolError(
            f"Nothing to fix at {options.site}.",
            hint=f"There is something to fix at {', '.join(places[:5])}." if places else "",
        )


def exit_code(outcome: SearchResult, request: FixRequest) -> int:
    options = request.options
    asked_for = {each.fingerprint for each in outcome.attempts}
    mended = {each.fingerprint for each in outcome.attempts if each.kept or each.unneeded}
    if not asked_for and outcome.notes:
        return 2  # The program fails by itself: nothing was tried.
    if not is_lost(outcome) and not asked_for:
        return 0
    if options.site is not None or options.rules:
        return 0 if mended >= asked_for else 1
    return 0 if mended else 1
