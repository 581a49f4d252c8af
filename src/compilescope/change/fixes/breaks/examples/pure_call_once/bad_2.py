import json

import torch

CONFIG = '{"scale": 2.0}'


# Scales.
def f(x):
    scale = json.loads(CONFIG)["scale"]
    return x * scale


torch.compile(f, backend="eager")(torch.ones(3))
