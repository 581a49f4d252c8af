"""A transfer between processes is changed after it was described."""

import torch
import torch.distributed as dist


def f(x, transfer):
    transfer.peer = 1  # breaks here
    return x + 1


def run():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        transfer = dist.P2POp(dist.isend, torch.ones(3), 0)
        return torch.compile(f, backend="eager")(torch.ones(3), transfer)
    finally:
        dist.destroy_process_group()
