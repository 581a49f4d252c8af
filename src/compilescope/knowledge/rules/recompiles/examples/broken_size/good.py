import torch

@torch.compile(backend="eager")
def f(x):
    return x[x > 0] * 2

with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
    for count in (3, 5, 1):
        print(f(torch.tensor([1.0] * count + [-1.0] * (8 - count))))
