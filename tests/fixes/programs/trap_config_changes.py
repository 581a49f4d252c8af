# ideal: any
# trap: the settings change between two calls; what was computed from them once must not stay
import json

import torch

settings = {"scale": 1}


def f(x):
    return x * len(json.dumps(settings))


run = torch.compile(f, backend="eager")
print(run(torch.ones(2)).tolist())
settings["more"] = [1, 2, 3]
print(run(torch.ones(2)).tolist())
