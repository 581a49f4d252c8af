import torch


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x, kinds):
    out = torch.zeros_like(x)
    mask = kinds == 2
    out[mask] = x[mask] * 3
    return out + 1


f(torch.ones(4, 2), torch.tensor([0, 2, 2, 0]))
