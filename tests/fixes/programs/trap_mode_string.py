# ideal: none
# trap: both modes are needed; one graph for each is right, and hiding one loses it
import torch


@torch.compile(backend="eager")
def activate(x, mode):
    return x.relu() if mode == "relu" else x.tanh()


x = torch.linspace(-1, 1, 5)
for _ in range(2):
    for mode in ("relu", "tanh", "gelu"):
        print(mode, activate(x, mode))
