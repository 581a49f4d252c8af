#: note: The logger is the module's; what the call reads of its function is handed over.
import logging
import torch as th

log = logging.getLogger("train")


class Net(th.nn.Module):
    def forward(self, x):
        for number in range(2):
            x = x * 2
            log.info(
                "layer %d: %s",  # for the curious
                number,
                [round(v, 2) for v in x.tolist()],
            )
        return x


net = th.compile(Net(), backend="eager")
net(th.ones(3))
