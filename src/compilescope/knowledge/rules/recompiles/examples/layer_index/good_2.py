import torch

class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x):
        return x * (self.layer_idx + 1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(index) for index in range(3)])

    def forward(self, x):
        return [layer(x) for layer in self.layers]

for result in torch.compile(Net(), backend="eager")(torch.ones(3)):
    print(result)
