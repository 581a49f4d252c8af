import torch


@torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x):
    kept = torch.nonzero(x > 0)
    return x[: kept.max().item()] * kept.shape[0]


f(torch.ones(3))
