#: because: now and then
import torch


@torch.compile(backend="eager")
def step_of(x, step):
    y = x.sin() * 2
    scale = 1.0
    if step % 3 == 0:
        scale = y.mean().item()
        print("scale", scale)
    return y * scale


for step in range(4):
    step_of(torch.ones(3), step)
