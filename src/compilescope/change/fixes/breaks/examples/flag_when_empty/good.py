import torch


def layer(x, picked, any_picked):
    if any_picked:
        x[picked] = x[picked].sin()
    return x * 2


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x, picked):
    any_picked = True
    x = layer(x + 1, picked, any_picked)
    return layer(x, picked, any_picked)


f(torch.ones(4, 2), torch.tensor([True, False, True, False]))
