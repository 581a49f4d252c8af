import torch


def test_model():
    assert torch.compile(torch.sin, backend="eager")(torch.zeros(2)).sum() == 0
