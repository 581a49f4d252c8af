import torch


def is_rounding(eager, compiled, exact):
    own = (eager.double() - exact).abs().mean()
    error = (compiled.double() - exact).abs().mean()
    return bool(error <= 4 * own + torch.finfo(eager.dtype).eps)
