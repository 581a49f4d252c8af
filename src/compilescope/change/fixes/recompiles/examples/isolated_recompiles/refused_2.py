#: because: applied once
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.double = True

    def forward(self, x):
        return x * 2 if self.double else x


class Server:
    def __init__(self, net):
        self.net = net
        self.fast = torch.compile(net, backend="eager")

    def answer(self, x, double):
        self.net.double = double
        return self.fast(x)


def main():
    server = Server(Net())
    for double in (True, False):
        server.answer(torch.ones(3), double)


main()
