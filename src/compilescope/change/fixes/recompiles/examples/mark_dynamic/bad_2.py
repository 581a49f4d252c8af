#: note: the argument has no name of its own
import torch as th


class Net(th.nn.Module):
    def forward(self, batch):
        return batch["x"] * 2


net = Net()
net.compile(backend="eager")
for size in (3, 5, 7):
    net({"x": th.ones(2, size)})
