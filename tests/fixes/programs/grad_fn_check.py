# ideal: leaf-for-grad-fn
import torch

w = torch.nn.Parameter(torch.ones(3))


def penalised(x):
    y = x * w
    if y.grad_fn is not None:
        y = y + 0.01 * w.square().sum()
    return y.sum()


f = torch.compile(penalised, backend="aot_eager")
print(f"{f(torch.ones(3)).item():.4f}")
