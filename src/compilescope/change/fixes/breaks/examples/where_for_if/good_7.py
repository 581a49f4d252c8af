import torch


class Block(torch.nn.Module):
    def forward(self, x, mask):
        needs_mask = self.training or mask.any()
        y = x.sin()
        if self.training:  # some rows are padded
            y = y.masked_fill(mask, 0.0)
        else:
            y = torch.where(needs_mask, y.masked_fill(mask, 0.0), y)
        return y + 1


torch.compile(Block(), backend="eager")(torch.ones(3), torch.zeros(3, dtype=torch.bool))
