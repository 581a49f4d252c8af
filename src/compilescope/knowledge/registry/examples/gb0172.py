"""A collective is started that goes on behind the program's back."""

import torch
import torch.distributed as dist

ALSO = ("GB0156",)


def f(x):
    work = dist.all_reduce(x, async_op=True)  # breaks here
    work.wait()
    return x + 1


def run():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        return torch.compile(f, backend="eager")(torch.ones(3))
    finally:
        dist.destroy_process_group()


def plain(x):
    dist.all_reduce(x)
    return x + 1


def run_fixed():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        return torch.compile(plain, backend="eager")(torch.ones(3))
    finally:
        dist.destroy_process_group()
