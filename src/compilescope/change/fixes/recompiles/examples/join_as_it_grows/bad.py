import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(4, 12)
        self.ks = []
        self.vs = []

    def reset(self):
        self.ks = []
        self.vs.clear()

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        self.ks.append(k)
        self.vs += [v]
        k = torch.cat(self.ks, dim=1)
        v = torch.cat(self.vs, 1)
        return torch.softmax(q @ k.transpose(1, 2), -1) @ v


net = Attention()
step = torch.compile(net, backend="eager")
for prompt in range(2):
    net.reset()
    x = torch.ones(2, 1, 4)
    for _ in range(8):
        x = step(x).detach()
