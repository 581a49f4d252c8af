"""A fix that later ones have made unnecessary is not handed out."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program, subjects_of
from compilescope.change.repair.search.attempts import SearchStep
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.pruning import Pruning, unneeded_maybe, without
from compilescope.change.repair.search.rounds import search
from compilescope.change.repair.search.try_log import Tried
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

pytestmark = [pytest.mark.torch]
PROGRAM = """
import torch


@torch.compile(backend="eager")
def scaled(x):
    peak = x.abs().max().item()
    y = x / peak
    print("scaled")
    return y + 1


print(scaled(torch.ones(3)).tolist())
print(scaled(torch.ones(3) * 2).tolist())
"""
FLAG = PROGRAM.replace(
    "import torch\n", "import torch\n\ntorch._dynamo.config.capture_scalar_outputs = True\n", 1
)
QUIET = '    if not torch.compiler.is_compiling():\n        print("scaled")\n'


def _silent(doing: str, done: int, total: int) -> None:
    pass


def _later(text: str, *, rewrites: bool) -> str:
    text = text.replace('    print("scaled")\n', QUIET, 1)
    return (
        text.replace("x / peak", "x / x.abs().max()").replace(
            "    peak = x.abs().max().item()\n", ""
        )
        if rewrites
        else text
    )


def _chain(bench: Workbench, path: str, *texts: str) -> tuple[TrialBaseline, list[SearchStep]]:
    """Each text as if a round had kept it, for the first cause that is left."""
    base = TrialBaseline(bench)
    steps = [SearchStep(Version(), base.captured)]
    for number, text in enumerate(texts):
        last = steps[-1]
        program = Program(last.captured.run, last.captured.digest, path, dict(last.version.files))
        subject = min(subjects_of(program), key=lambda each: each.line)
        patch = Patch({path: text})
        version = last.version.with_patch(patch)
        tried = Tried(subject, patch, Verification(verdict="verified"), number)
        steps.append(SearchStep(version, bench.watch(version), [tried]))
    return base, steps


@pytest.mark.parametrize("rewrites", [True, False])
def test_a_flag_is_left_out_where_a_later_rewrite_does_without_it(
    tmp_path: Path, warm: WarmParent, rewrites: bool
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    with Workbench(Target("script", (str(path),)), warm=warm) as bench:
        base, steps = _chain(bench, str(path), FLAG, _later(FLAG, rewrites=rewrites))
        pruning = Pruning(base, steps, _silent)
        pruning.run()
    assert [each.number for each in pruning.left_out] == ([0] if rewrites else [])
    last = pruning.steps[-1]
    wanted = _later(PROGRAM if rewrites else FLAG, rewrites=rewrites)
    assert last.version.files == {str(path): wanted}
    assert not last.captured.digest.sites
    assert [each.patch.files for each in last.kept] == [{str(path): wanted}]


def test_what_changes_the_line_itself_is_needed_while_it_is_compiled(
    tmp_path: Path, warm: WarmParent
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    tensor = PROGRAM.replace(".max().item()", ".max()")
    with Workbench(Target("script", (str(path),)), warm=warm) as bench:
        _, steps = _chain(bench, str(path), tensor, _later(tensor, rewrites=False))
    assert unneeded_maybe(steps) == []
    one, other = steps[1].kept[0], steps[2].kept[0]
    eager = Tried(
        other.subject,
        Patch(other.patch.files, allows=frozenset({"compiles-less"})),
        other.verification,
        other.number,
    )
    steps[2] = SearchStep(steps[2].version, steps[2].captured, [eager])
    assert unneeded_maybe(steps) == [one]


def test_what_a_later_fix_has_changed_again_stays(tmp_path: Path, warm: WarmParent) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    tensor = PROGRAM.replace(".max().item()", ".max()")
    again = _later(tensor, rewrites=False).replace(".max()", ".amax()")
    with Workbench(Target("script", (str(path),)), warm=warm) as bench:
        _, steps = _chain(bench, str(path), tensor, again)
    assert without(steps, steps[1].kept) is None


def test_what_a_later_fix_takes_its_names_from_stays(tmp_path: Path, warm: WarmParent) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    named = FLAG.replace("import torch\n", "import torch\n\n_MOST_SHOWN = 3\n", 1)
    with Workbench(Target("script", (str(path),)), warm=warm) as bench:
        _, steps = _chain(bench, str(path), named, _later(named, rewrites=True))
        assert [each.number for each in unneeded_maybe(steps)] == [0]
        again = _later(named, rewrites=True).replace("y + 1", "y + int(_MOST_SHOWN_2)")
        again = again.replace("_MOST_SHOWN = 3", "_MOST_SHOWN = 3\n_MOST_SHOWN_2 = 1")
        _, steps = _chain(bench, str(path), named, again)
    assert unneeded_maybe(steps) == []


STEP = """
import torch
from torch import nn


@torch.compile(backend="eager")
def decode_step(model, tokens, temperature, eos):
    logits = model(tokens)
    if logits.isnan().any():
        print("warning: NaN in logits")
    scaled = logits / temperature
    token = scaled.argmax(-1)
    entropy = -(scaled.softmax(-1) * scaled.log_softmax(-1)).sum(-1).mean()
    done = bool((token == eos).all())
    return token, entropy.item(), done


torch.manual_seed(0)
model = nn.Linear(8, 8)
with torch.no_grad():
    for step in range(3):
        print(decode_step(model, torch.randn(2, 8), 0.7, 3))
"""


def test_what_is_compiled_is_said_of_the_programs_own_function(
    tmp_path: Path, warm: WarmParent
) -> None:
    """The step is first split before its conversions, then around its warning: to split it around
    all of these is enough."""
    path = tmp_path / "program.py"
    path.write_text(STEP)
    rules = frozenset({"converted-after", "compile-parts"})
    options = SearchOptions(timed=False, rules=rules)
    outcome = search(Target("script", (str(path),)), options, warm)
    assert outcome.verdict == "verified" and not outcome.after.breaks
    left_out = [each.fix for each in outcome.attempts if each.unneeded]
    kept = [each for each in outcome.attempts if each.kept]
    assert left_out == ["converted-after"] and [each.fix for each in kept] == ["compile-parts"]
    (text,) = outcome.files.values()
    assert "_decode_step_results" not in text and "_decode_step_results" not in kept[0].diff
    assert kept[0].function == "decode_step"
