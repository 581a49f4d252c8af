import torch
from torch._dynamo.utils import counters


def on_disk(fn, x):
    before = counters["inductor"]["fxgraph_cache_hit"]
    torch.compile(fn)(x)
    return counters["inductor"]["fxgraph_cache_hit"] > before
