import torch


@torch._dynamo.config.patch(graph_break_on_nn_param_ctor=False)
@torch.compile(backend="eager")
def f(x):
    gain = torch.nn.Parameter(torch.ones(3))
    return x * gain


f(torch.ones(3))
