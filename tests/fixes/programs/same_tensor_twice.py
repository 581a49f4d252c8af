# ideal: separate-argument
import torch


class Cross(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q = torch.nn.Linear(4, 4)
        self.k = torch.nn.Linear(4, 4)

    def forward(self, hidden, context):
        return self.q(hidden) @ self.k(context).T


torch.manual_seed(0)
cross = Cross()
net = torch.compile(cross, backend="eager")
hidden, context = torch.randn(3, 4), torch.randn(3, 4)
itself = net(hidden, hidden)
other = net(hidden, context=context)
print(f"{itself.sum().item():.4f} {other.sum().item():.4f}")
