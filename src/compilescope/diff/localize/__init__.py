"""Names the operation that a backend gets wrong."""

from compilescope.diff.localize.localizing import localize as localize
from compilescope.diff.localize.records import Guilty as Guilty
from compilescope.diff.localize.records import Localization as Localization
