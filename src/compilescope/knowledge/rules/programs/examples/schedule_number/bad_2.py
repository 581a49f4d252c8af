#: note: the number is given to a module's caller: the module alone is compiled
import torch

net = torch.nn.Linear(3, 3)
net.eval()


@torch.compile(backend="aot_eager")
def guided(x, strength):
    return x + round(strength, 1) * (net(x) - x)


with torch.no_grad():
    for strength in (0.5, 1.25, 2.0, 3.5):
        print(tuple(guided(torch.ones(2, 3), strength).shape))
