import torch

class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x):
        return x * (self.layer_idx + 1)

for index in range(3):
    print(torch.compile(Layer(index), backend="eager")(torch.ones(3)))
