import torch


class Block(torch.nn.Module):
    # Slow on old cards.
    @torch.compiler.disable(reason="slow")
    def rotate(self, x):
        return x.flip(-1)

    def forward(self, x):
        return self.rotate(x + 1) * 2


torch.compile(Block(), backend="eager")(torch.ones(3))
