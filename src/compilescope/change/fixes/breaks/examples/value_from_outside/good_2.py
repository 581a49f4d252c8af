import torch


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.source = torch.Generator().manual_seed(0)

    def _forward_relu(self, x, noise):
        return (x + noise).relu()

    @torch.compiler.disable(recursive=False)
    def forward(self, x):
        noise = torch.randn(x.shape, generator=self.source)  # ours alone
        return self._forward_relu(x, noise)


torch.compile(Noisy(), backend="eager")(torch.ones(3))
