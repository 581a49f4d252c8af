"""Real model families: every break and recompile is explained, in words of its own line."""

from __future__ import annotations

import re
import warnings

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow]

pytest.importorskip("transformers", reason="the model families need transformers (extra: models)")


def _names() -> list[str]:
    from models.families import FAMILIES

    return list(FAMILIES)


@pytest.mark.parametrize("name", _names())
def test_every_cause_is_explained(name: str) -> None:
    import torch

    import compilescope
    from models.families import FAMILIES

    torch.manual_seed(0)
    torch._dynamo.reset()
    model, call = FAMILIES[name]()
    with warnings.catch_warnings(), compilescope.capture() as run:
        warnings.simplefilter("ignore")
        call(torch.compile(model, backend="eager"))
    seen = run.digest
    assert (seen.tool_faults, seen.unexplained_skips, seen.failures) == (0, (), ())
    for site in seen.sites:
        assert site.category not in ("", "unclassified"), site
        assert site.why and site.remedy, site
        words = set(re.findall(r"\w+", site.source))
        assert words & set(re.findall(r"\w+", " ".join(r.text for r in site.remedy))), site
    for frame in seen.recompiles:
        for cause in frame.causes:
            assert cause.rule and cause.why and cause.remedy, cause


def test_there_are_enough_of_them() -> None:
    assert len(_names()) >= 12
