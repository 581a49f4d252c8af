import torch


class Attend(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(4, 8)

    def forward(self, x, kept):
        key, value = self.proj(x).chunk(2, dim=-1)
        key = torch.cat([kept[0], key], dim=1)
        value = torch.cat([kept[1], value], dim=1)
        out = torch.softmax(x @ key.transpose(1, 2), dim=-1) @ value
        return out, (key, value)


torch.manual_seed(0)
block = Attend().eval()
step = torch.compile(block, backend="eager", dynamic=False)
with torch.no_grad():
    x = torch.randn(1, 1, 4)
    state = block.proj(torch.randn(1, 3, 4)).chunk(2, dim=-1)
    for _ in range(5):
        x, state = step(x, state)
print([round(v, 4) for v in x.flatten().tolist()])
