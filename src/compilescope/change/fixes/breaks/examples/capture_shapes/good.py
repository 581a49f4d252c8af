import torch


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x):
    (kept,) = torch.where(x > 0)
    return x[kept].sort().values


f(torch.ones(3))
