"""Semi-supervised node classification with torch_geometric's GCNConv on a random graph."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden_channels)
        self.conv2 = GCNConv(hidden_channels, out_channels)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.3, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.3, training=self.training)
        return self.conv2(x, edge_index)


def make_graph(nodes=120, classes=4):
    labels = torch.arange(nodes) % classes
    source = torch.randint(0, nodes, (600,))
    target = torch.randint(0, nodes, (600,))
    keep = (labels[source] == labels[target]) | (torch.rand(600) < 0.2)
    edge_index = to_undirected(torch.stack([source[keep], target[keep]]), num_nodes=nodes)
    features = F.one_hot(labels, classes).float() + torch.randn(nodes, classes)
    features = torch.cat([features, torch.randn(nodes, 4)], dim=1)
    order = torch.randperm(nodes)
    data = Data(x=features, edge_index=edge_index, y=labels)
    for name, part in (("train", order[:60]), ("val", order[60:90]), ("test", order[90:])):
        mask = torch.zeros(nodes, dtype=torch.bool)
        mask[part] = True
        data[f"{name}_mask"] = mask
    return data


def main():
    torch.manual_seed(12)
    data = make_graph()
    model = torch.compile(GCN(data.num_features, 16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)

    def train():
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        return loss.item()

    @torch.no_grad()
    def test():
        model.eval()
        pred = model(data.x, data.edge_index).argmax(dim=-1)
        masks = (data.train_mask, data.val_mask, data.test_mask)
        return [(pred[mask] == data.y[mask]).float().mean().item() for mask in masks]

    for epoch in range(1, 21):
        loss = train()
        if epoch % 5 == 0:
            scores = " ".join(f"{score:.2f}" for score in test())
            print(f"epoch {epoch:02d} loss {loss:.2f} train/val/test {scores}")


if __name__ == "__main__":
    main()
