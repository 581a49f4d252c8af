import torch

print(torch.compile(lambda x: torch.relu(x), backend="eager")(torch.ones(3)))
print(torch.compile(lambda x: torch.tanh(x), backend="eager")(torch.ones(3)))
