import torch

torch.manual_seed(0)
rnn = torch.nn.LSTM(4, 4)
before = torch.compile(lambda x: x + 1, backend="eager")
after = torch.compile(lambda y: y * 2, backend="eager")
print(after(rnn(before(torch.ones(2, 1, 4)))[0]))
