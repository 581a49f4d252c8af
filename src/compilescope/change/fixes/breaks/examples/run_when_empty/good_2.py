import torch


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x, kinds):
    rows = torch.where(kinds == 2)[0]
    x.index_add_(0, rows, x[rows].sin())
    return x + 1


f(torch.ones(4, 2), torch.tensor([0, 2, 2, 0]))
