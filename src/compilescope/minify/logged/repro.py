"""A script that shows a break of a log on whatever device its reader has.

A log has no inputs and no weights, so the script is not the user's program: it is the tested
example of the rule that explains the break. It is run here on plain torch; what a device's backend
makes of it could not be seen here, and the script says so.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from compilescope.minify.logged.example import Parts, example_parts
from compilescope.minify.script.verifying import write_verified
from compilescope.rules.sites import Site

_SCRIPT = '''\
"""Shows graph break {gb}: {kind}

The log has it at {place}:

    {source}

This is not that program, but a small one that breaks for the same reason. {verified}

    python {name}            plain torch, backend eager
    python {name} openxla    torch_xla on a CPU
    python {name} tt         a Tenstorrent device

Exit status: 1 while Dynamo breaks, 0 once it does not, 2 if it could not run.
"""

import sys
import traceback

{prelude}

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "eager"
EXPECTED = {expected!r}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = {compiled}

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


def device():
    if BACKEND not in ("tt", "openxla"):
        return torch.device("cpu")
    import torch_xla
    import torch_xla.runtime as xr

    xr.set_device_type("TT" if BACKEND == "tt" else "CPU")
    return torch_xla.device()


def arguments(*args, **kwargs):
    return args, kwargs


def main():
    place = device()
    model = Model().to(place)
    given = arguments({arguments})
    args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to(place), given)
    model.compile(backend=BACKEND)
    model(*args, **kwargs)

    torch._dynamo.reset()
    # Not fullgraph=True: it changes what Dynamo captures.
    try:
        with torch._dynamo.error_on_graph_break(True):
            torch.compile(model.forward, backend=BACKEND)(*args, **kwargs)
    except Exception as error:
        if EXPECTED not in str(error):
            raise
        print("Dynamo breaks:", EXPECTED)
        return 1
    print("No graph break.")
    return 0


try:
    status = main()
except Exception:
    traceback.print_exc()
    status = 2
sys.exit(status)
'''
_HERE = "Verified to break here on plain torch; openxla and tt were not available."
_NOT_HERE = "Unverified: torch is not installed here."
_WORD = re.compile(r"[^a-z0-9]+")
_LIMIT_S = 120.0


@dataclass(frozen=True)
class LogRepro:
    """The repro of one break, or why there is none."""

    fingerprint: str
    path: Path | None = None
    verified: bool = False
    reason: str = ""


def write_repro(site: Site, folder: Path) -> LogRepro:
    """The first example that shows the same kind of break."""
    candidates = example_parts(site.rule)
    if not candidates:
        reason = f"there is no tested example for {site.gb_id or site.gb_type}"
        return LogRepro(site.fingerprint, reason=reason)
    path = folder / _file_name(site)
    if importlib.util.find_spec("torch") is None:
        return _unverified(site, path, candidates[0])
    reason = ""
    for parts in candidates:
        made = write_verified(path, _text(site, parts, path.name, _HERE), timeout_s=_LIMIT_S)
        if made.path is not None:
            return LogRepro(site.fingerprint, made.path, verified=True)
        reason = made.reason
    return LogRepro(site.fingerprint, reason=reason)


def _unverified(site: Site, path: Path, parts: Parts) -> LogRepro:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(site, parts, path.name, _NOT_HERE), encoding="utf-8")
    return LogRepro(site.fingerprint, path, reason="torch is not installed here")


def _text(site: Site, parts: Parts, name: str, verified: str) -> str:
    return _SCRIPT.format(
        gb=site.gb_id or "(no ID)",
        kind=_one_line(site.gb_type),
        place=_one_line(f"{site.file}:{site.line}"),
        source=_one_line(site.source) or "(the log does not include the line)",
        verified=verified,
        name=name,
        prelude=parts.prelude,
        compiled=parts.compiled,
        arguments=parts.arguments,
        expected=site.gb_type,
    )


def _one_line(text: str) -> str:
    """For a docstring: a log may hold anything."""
    return " ".join(text.split()).replace("\\", "/").replace('"""', "'''")[:200]


def _file_name(site: Site) -> str:
    stem = _WORD.sub("_", Path(site.file).stem.lower()).strip("_")[:40]
    return f"{(site.gb_id or 'break').lower()}_{stem or 'program'}_{site.line}.py"
