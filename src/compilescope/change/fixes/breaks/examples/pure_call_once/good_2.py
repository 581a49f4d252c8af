import json

import torch

CONFIG = '{"scale": 2.0}'


@torch.compiler.assume_constant_result
def _loads_once():
    return json.loads(CONFIG)


# Scales.
def f(x):
    scale = _loads_once()["scale"]
    return x * scale


torch.compile(f, backend="eager")(torch.ones(3))
