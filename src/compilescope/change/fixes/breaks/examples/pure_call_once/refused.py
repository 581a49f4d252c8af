#: because: `config` can change
import json

import torch

config = {"scale": 2.0}


def f(x):
    return x + len(json.dumps(config))


torch.compile(f, backend="eager")(torch.ones(3))
config["more"] = 1
