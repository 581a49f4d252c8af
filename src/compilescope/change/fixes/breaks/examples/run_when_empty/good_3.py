import torch


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x, weight):
    chosen = x.argmax(dim=-1)
    out = torch.zeros_like(x)
    for k in range(x.shape[-1]):
        mask = chosen == k
        out[mask] = x[mask] @ weight[k]
    return out + 1


f(torch.eye(4)[:2], torch.ones(4, 4, 4))
