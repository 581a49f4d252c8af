import torch


def layer(x, picked, any_picked, verbose):
    if any_picked:
        idx = picked.nonzero(as_tuple=True)
        x[idx] = x[idx].sin().flatten(1)
    return (x, idx) if any_picked and verbose else (x, None)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x, picked, verbose=False):
    any_picked = not verbose or bool(picked.sum() > 0)
    return layer(x + 1, picked, any_picked, verbose)


f(torch.ones(4, 2), torch.tensor([True, False, True, False]))
