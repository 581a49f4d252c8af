# ideal: list-for-tensor
import torch
from torch import nn


class Encoder(nn.Module):
    @staticmethod
    def points(shapes, ratios):
        found = []
        for level, (height, width) in enumerate(shapes):
            y, x = torch.meshgrid(
                torch.linspace(0.5, height - 0.5, height, dtype=torch.float32),
                torch.linspace(0.5, width - 0.5, width, dtype=torch.float32),
                indexing="ij",
            )
            y = y.reshape(-1)[None] / (ratios[:, None, level, 1] * height)
            x = x.reshape(-1)[None] / (ratios[:, None, level, 0] * width)
            found.append(torch.stack((x, y), -1))
        return torch.cat(found, 1)

    def forward(self, x, shapes=None, sizes=None, ratios=None):
        return x + self.points(shapes, ratios).sum() + sum(h for h, _ in sizes)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def grids(self, x, shapes):
        parts = []
        start = 0
        for height, width in shapes:
            part = x[:, start : start + height * width]
            parts.append(part.view(x.shape[0], height, width).sum(1))
            start += height * width
        return torch.cat(parts, 1)

    def forward(self, maps):
        flat = []
        sizes = []
        for each in maps:
            batch, height, width = each.shape
            size = (height, width)
            sizes.append(size)
            flat.append(each.flatten(1))
        flat = torch.cat(flat, 1)
        shapes = torch.as_tensor(sizes, dtype=torch.long, device=flat.device)
        starts = torch.cat((shapes.new_zeros((1,)), shapes.prod(1).cumsum(0)[:-1]))
        ratios = torch.ones(batch, len(maps), 2)
        out = self.encoder(x=flat, shapes=shapes, sizes=sizes, ratios=ratios)
        return out + starts.sum(), self.grids(out, shapes)


torch.manual_seed(0)
model = torch.compile(Model(), backend="eager")
for _ in range(2):
    out, summed = model([torch.randn(2, 4, 6), torch.randn(2, 2, 3)])
    print(f"{out.sum().item():.4f} {summed.sum().item():.4f}")
