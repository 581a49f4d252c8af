import torch as th


class Net(th.nn.Module):
    def forward(self, batch):
        return batch["x"] * 2


net = Net()
net.compile(backend="eager")
for size in (3, 5, 7):
    batch = {"x": th.ones(2, size)}
    th._dynamo.maybe_mark_dynamic(batch['x'], 1)
    net(batch)
