import torch


class Teacher(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quiet = torch.no_grad()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():  # it does not learn
            y = self.layer(x)
        return y + x


torch.compile(Teacher(), backend="eager")(torch.ones(3))
