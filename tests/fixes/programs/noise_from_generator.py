# ideal: value-from-outside
import torch


class Diffuse(torch.nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)

    def forward(self, latents, sigma: float):
        noise = torch.randn(latents.shape, generator=self.generator)
        return (latents + sigma * noise).tanh()


step = torch.compile(Diffuse(3), backend="eager")
x = torch.zeros(2, 2)
for _ in range(3):
    x = step(x, 0.5)
print([round(v, 5) for v in x.flatten().tolist()])
