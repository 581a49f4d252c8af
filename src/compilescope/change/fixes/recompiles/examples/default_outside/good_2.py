import torch


class Attention(torch.nn.Module):
    def _forward_result(self, x, bias, scale):
        scores = x * scale + bias
        return scores.softmax(-1)

    @torch.compiler.disable(recursive=False)
    def forward(self, x, bias=None, scale=None):
        bias = torch.zeros_like(x) if bias is None else bias
        if scale is None:
            scale = x.new_ones(())
        return self._forward_result(x, bias, scale)


attention = torch.compile(Attention(), backend="eager")
for bias in (None, torch.ones(3)):
    attention(torch.ones(3), bias)
