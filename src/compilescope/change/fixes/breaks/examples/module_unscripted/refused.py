#: because: a plain module may not have
import torch

head = torch.jit.script(torch.nn.Linear(3, 3))
print(head.graph)


def f(x):
    return head(x).relu()


torch.compile(f, backend="eager")(torch.ones(3))
