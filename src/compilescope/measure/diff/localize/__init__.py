"""Localizes a difference: names the operations of a model that a backend gets wrong.

`localizer` records the graphs of a program and asks the backend about each; `search` narrows one
that goes wrong down to operations, by `probes` of its parts (`graph_parts`), each of which
`verdicts` judges; `names` and `attribution` say of an operation where it comes from, and which
pass is to blame.
"""

from compilescope.measure.diff.localize.localizer import Moment as Moment
from compilescope.measure.diff.localize.localizer import localize as localize
from compilescope.measure.diff.localize.localizer import localize_plans as localize_plans
from compilescope.measure.diff.localize.records import GuiltyOperation as GuiltyOperation
from compilescope.measure.diff.localize.records import Localization as Localization
