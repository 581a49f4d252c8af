import hashlib

import torch


@torch.compiler.assume_constant_result
def _hexdigest_once(name):
    return hashlib.md5(name.encode()).hexdigest()


def f(x, name):
    seed = int(_hexdigest_once(name)[:4], 16)  # of the layer
    return x + seed


torch.compile(f, backend="eager")(torch.ones(3), "first")
