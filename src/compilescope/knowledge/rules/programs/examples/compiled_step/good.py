import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
seen = []


def learn(x, y):
    error = torch.nn.functional.mse_loss(net(x), y)
    sgd.zero_grad()
    error.backward()
    sgd.step()
    seen.append(round(error.item(), 4))


x, y = torch.randn(16, 4), torch.randn(16, 1)
net.compile(backend="eager")
for _ in range(4):
    learn(x, y)
print(seen)
