"""Single-class box detector on synthetic images; predictions go through NMS before scoring."""

import argparse
import json
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

IMAGE = 32
GRID = 8
CELL = IMAGE // GRID


class Squares(Dataset):
    """One or two bright squares on a dark background."""

    def __init__(self, size, seed):
        self.size, self.seed = size, seed

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(self.seed * 10_000 + index)
        image = 0.2 * torch.rand(1, IMAGE, IMAGE, generator=g)
        target = torch.zeros(5, GRID, GRID)
        for _ in range(1 + index % 2):
            side = torch.randint(6, 12, (1,), generator=g).item()
            x, y = torch.randint(0, IMAGE - side, (2,), generator=g).tolist()
            image[0, y : y + side, x : x + side] += 0.7
            cx, cy = x + side / 2, y + side / 2
            col, row = int(cx // CELL), int(cy // CELL)
            target[0, row, col] = 1.0
            target[1:, row, col] = torch.tensor(
                [cx / CELL - col, cy / CELL - row, side / IMAGE, side / IMAGE]
            )
        return image, target


def box_iou(box, boxes):
    lt = torch.maximum(box[:2], boxes[:, :2])
    rb = torch.minimum(box[2:], boxes[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=1)
    area = (box[2:] - box[:2]).prod()
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
    return inter / (area + areas - inter + 1e-6)


def nms(boxes, scores, threshold):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        best = order[0]
        keep.append(best)
        overlap = box_iou(boxes[best], boxes[order[1:]])
        order = order[1:][overlap <= threshold]
    return torch.stack(keep)


class Detector(nn.Module):
    def __init__(self, width=16, iou_threshold=0.4, top_k=12):
        super().__init__()
        self.iou_threshold = iou_threshold
        self.top_k = top_k
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Conv2d(2 * width, 5, 1)
        rows, cols = torch.meshgrid(torch.arange(GRID), torch.arange(GRID), indexing="ij")
        self.register_buffer("cells", torch.stack([cols, rows]).float())

    def decode(self, raw):
        centers = (raw[:, 1:3].sigmoid() + self.cells) * CELL
        sizes = raw[:, 3:5].sigmoid() * IMAGE
        boxes = torch.cat([centers - sizes / 2, centers + sizes / 2], dim=1)
        return boxes.flatten(2).transpose(1, 2), raw[:, 0].sigmoid().flatten(1)

    def forward(self, images):
        raw = self.head(self.backbone(images))
        if self.training:
            return raw
        boxes, scores = self.decode(raw)
        scores, index = scores.topk(self.top_k, dim=1)
        results = []
        for i in range(len(images)):
            candidates = boxes[i, index[i]]
            keep = nms(candidates, scores[i], self.iou_threshold)
            results.append((candidates[keep], scores[i][keep]))
        return results


def detection_loss(raw, target):
    obj = F.binary_cross_entropy_with_logits(raw[:, 0], target[:, 0], pos_weight=torch.tensor(10.0))
    box = (raw[:, 1:].sigmoid() - target[:, 1:]).abs() * target[:, :1]
    return obj + 2 * box.sum() / target[:, 0].sum().clamp(min=1)


def target_boxes(target):
    rows, cols = target[0].nonzero(as_tuple=True)
    cx = (target[1, rows, cols] + cols) * CELL
    cy = (target[2, rows, cols] + rows) * CELL
    half = target[3, rows, cols] * IMAGE / 2
    return torch.stack([cx - half, cy - half, cx + half, cy + half], dim=1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    found = total = kept = 0
    for images, targets in loader:
        for (boxes, _scores), target in zip(model(images), targets, strict=True):
            kept += len(boxes)
            for truth in target_boxes(target):
                found += int(box_iou(truth, boxes).max() > 0.5)
                total += 1
    return {"recall": round(found / total, 3), "boxes": kept}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    train = DataLoader(Squares(160, seed=1), args.batch_size, shuffle=True)
    test = DataLoader(Squares(32, seed=2), 4)
    model = Detector()
    compiled = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        compiled.train()
        for images, targets in train:
            loss = detection_loss(compiled(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} {json.dumps(evaluate(compiled, test))}")
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), os.path.join(folder, "detector.pt"))
        print("saved", len(os.listdir(folder)), "file")


if __name__ == "__main__":
    main()
