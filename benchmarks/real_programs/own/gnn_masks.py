"""Node classification on a synthetic community graph with train/val/test masks."""

import argparse
import copy
import os
import tempfile
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_graph(nodes=180, classes=3, features=24, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (nodes,), generator=g)
    same = y[:, None] == y[None, :]
    prob = torch.where(same, 0.06, 0.008)
    adjacency = torch.rand(nodes, nodes, generator=g) < prob
    adjacency = adjacency | adjacency.T
    adjacency.fill_diagonal_(True)
    edge_index = adjacency.nonzero().T.contiguous()
    centers = torch.randn(classes, features, generator=g)
    x = 0.6 * centers[y] + torch.randn(nodes, features, generator=g)
    order = torch.randperm(nodes, generator=g)
    masks = {}
    for name, part in (("train", order[:60]), ("val", order[60:110]), ("test", order[110:])):
        mask = torch.zeros(nodes, dtype=torch.bool)
        mask[part] = True
        masks[name] = mask
    return SimpleNamespace(x=x, y=y, edge_index=edge_index, masks=masks, classes=classes)


def gcn_norm(edge_index, nodes):
    src, dst = edge_index
    degree = torch.zeros(nodes).index_add_(0, dst, torch.ones(dst.shape[0]))
    inv = degree.pow(-0.5)
    return inv[src] * inv[dst]


class GCNConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x, edge_index, weight):
        src, dst = edge_index
        x = self.lin(x)
        out = torch.zeros_like(x).index_add(0, dst, x[src] * weight[:, None])
        return out + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes, dropout=0.5):
        super().__init__()
        self.conv1 = GCNConv(features, hidden)
        self.conv2 = GCNConv(hidden, classes)
        self.dropout = dropout

    def forward(self, x, edge_index, weight, y, mask):
        x = F.dropout(x, self.dropout, training=self.training)
        x = F.relu(self.conv1(x, edge_index, weight))
        x = F.dropout(x, self.dropout, training=self.training)
        logits = self.conv2(x, edge_index, weight)
        logits, y = logits[mask], y[mask]
        loss = F.cross_entropy(logits, y)
        correct = (logits.argmax(dim=-1) == y).sum()
        return loss, correct


def train_epoch(model, data, weight, optimizer):
    model.train()
    optimizer.zero_grad()
    loss, correct = model(data.x, data.edge_index, weight, data.y, data.masks["train"])
    loss.backward()
    optimizer.step()
    return loss.item(), correct.item() / data.masks["train"].sum().item()


@torch.no_grad()
def test(model, data, weight):
    model.eval()
    scores = {}
    for name, mask in data.masks.items():
        _, correct = model(data.x, data.edge_index, weight, data.y, mask)
        scores[name] = correct.item() / mask.sum().item()
    return scores


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.state = patience, 0.0, 0, None

    def step(self, score, net):
        if score > self.best:
            self.best, self.bad = score, 0
            self.state = copy.deepcopy(net.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--patience", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(12)
    data = make_graph()
    weight = gcn_norm(data.edge_index, len(data.x))
    print(f"{len(data.x)} nodes, {data.edge_index.shape[1]} edges, {data.classes} classes")

    net = GCN(data.x.shape[1], args.hidden, data.classes)
    model = torch.compile(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr, weight_decay=5e-4)
    stopper = EarlyStopping(args.patience)

    for epoch in range(1, args.epochs + 1):
        loss, train_acc = train_epoch(model, data, weight, optimizer)
        scores = test(model, data, weight)
        if epoch % 10 == 0:
            line = " ".join(f"{k} {v:.3f}" for k, v in scores.items())
            print(f"epoch {epoch:03d} loss {loss:.3f} batch {train_acc:.3f} {line}")
        if stopper.step(scores["val"], net):
            print("stopped at", epoch)
            break

    with tempfile.TemporaryDirectory() as folder:
        torch.save(stopper.state, os.path.join(folder, "gcn.pt"))
        net.load_state_dict(torch.load(os.path.join(folder, "gcn.pt")))
    print(f"best val {stopper.best:.3f}, test {test(model, data, weight)['test']:.3f}")


if __name__ == "__main__":
    main()
