"""A tuned script held to the original: its step by the clock, and what it computes.

It runs by itself, in a fresh process, by turns with the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from compilescope.analysis.intervals import Ratio
from compilescope.model.fix_search import FixCheck
from compilescope.processes.deadline import Deadline, OutOfTime
from compilescope.recorder.target import Target
from compilescope.repair.trials.version import Version
from compilescope.source.refusals import Refused
from compilescope.tune.judge import NumbersJudge, judge_first
from compilescope.tune.measurement import Meter
from compilescope.tune.options import TuneOptions
from compilescope.tune.outcome import OtherProgram, TuneResult, TuneTrial, in_words
from compilescope.tune.step_process import StepFailed


@dataclass(frozen=True)
class ScriptSpeed:
    """What was measured."""

    checks: tuple[FixCheck, ...]
    ratio: Ratio | None = None


def measure_script(
    script: Target, file: Path, original: Target, result: TuneResult, options: TuneOptions
) -> ScriptSpeed:
    """`file` is the script's own."""
    first = result.first
    if first is None:
        return _unknown("its step is not known")
    if first.place.file != result.main:
        return _unknown("the step is not in the script's own file")
    place = msgspec.structs.replace(first.place, file=str(file.absolute()))
    options = replace(options, caches=None, deadline=options.deadline or Deadline())
    with ExitStack() as opened:
        ours = opened.enter_context(options.workbench(script))
        meter = Meter(opened.enter_context(options.workbench(original)), options, first)
        opened.callback(meter.close)
        folder = meter.new_folder("script")
        trial = TuneTrial(result.kept, Version(), folder, program=OtherProgram(ours, place))
        try:
            judge = NumbersJudge(meter, options)
            meter.start([trial])
            judge.anchor()
            meter.measure([trial], "measuring the script")
            judge_first([trial], judge)
        except OutOfTime:
            return _unknown("the time budget ended before the script was measured")
        except (StepFailed, Refused) as failure:
            return _unknown(f"the script could not be measured: {failure}")
        return ScriptSpeed(tuple(_checks(trial)), trial.ratio)


def _checks(trial: TuneTrial) -> Iterator[FixCheck]:
    found = trial.ratio
    if found is None or found.low is None or found.high is None:
        failed = trial.verdict == "rejected"
        yield FixCheck("speed", "fail" if failed else "unknown", trial.reason)
        return
    if found.low > 1:
        yield FixCheck("speed", "pass", in_words(found))
        yield FixCheck("step", trial.numbers or "unknown", trial.numbers_reason)
    else:
        slower = found.high < 1
        words = f"its step is not faster than the original's: {in_words(found)}"
        yield FixCheck("speed", "fail" if slower else "unknown", words)


def _unknown(words: str) -> ScriptSpeed:
    return ScriptSpeed((FixCheck("speed", "unknown", words),))
