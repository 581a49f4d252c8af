import torch

torch.manual_seed(0)
rnn = torch.nn.LSTM(4, 4)

def f(x):
    return rnn(x + 1)[0] * 2

print(torch.compile(f, backend="eager")(torch.ones(2, 1, 4)))
