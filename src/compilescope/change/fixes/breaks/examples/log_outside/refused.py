#: because: both before and after
import torch


@torch.compile(backend="eager")
def step_of(x, step):
    y = x.sin() * 2
    if step % 3 == 0:
        print("mean", y.mean().item())
    z = y.cos() + 1
    return z.sum() + z.mean()


for step in range(4):
    step_of(torch.ones(3), step)
