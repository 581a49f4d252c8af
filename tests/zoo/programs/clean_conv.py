"""Shows a small convolutional net in evaluation mode without any trouble."""

import torch

#: graphs 1

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3),
    torch.nn.BatchNorm2d(4),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(4, 2),
).eval()
compiled = torch.compile(model, backend="eager")
with torch.no_grad():
    compiled(torch.randn(2, 3, 8, 8))
