# ideal: async-assert
# The check in a loop leaves all of it to Python; without, the counter is a number of the graph.
import torch
from torch import nn


class Layer(nn.Linear):
    def forward(self, x):
        return super().forward(x).tanh()


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(Layer(4, 4) for _ in range(2))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        for place, layer in enumerate(self.layers):
            x = layer(x)
            if torch.isnan(x).any():
                raise RuntimeError(f"NaN after layer {place}")
        return x * 2


stack = Stack()
run = torch.compile(stack, backend="aot_eager")
for _ in range(5):
    out = run(torch.randn(3, 4))
    out.sum().backward()
    print(round(out.sum().item(), 4), stack.calls)
