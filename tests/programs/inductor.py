"""Inductor, forward and backward, with its pool of compile workers."""

import os

import torch
from torch._inductor import async_compile


@torch.compile
def step(x, w):
    return torch.nn.functional.gelu(x @ w).sum(dim=1).relu()


torch.manual_seed(0)
w = torch.randn(8, 8, requires_grad=True)
out = step(torch.randn(4, 8), w)
out.sum().backward()
print(out.detach().view(torch.int32).tolist())
print(w.grad.view(torch.int32).flatten().tolist())
if os.environ.get("SHOW_WORKERS"):
    async_compile.AsyncCompile.wait_pool_ready()
    pool = async_compile.AsyncCompile.process_pool()
    print("workers", int(pool.process.poll() is None))
