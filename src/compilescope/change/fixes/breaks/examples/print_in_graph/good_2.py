import logging
import torch as th

log = logging.getLogger("train")


@th.library.custom_op("program::log_in_net_forward", mutates_args=())
def log_in_net_forward(number: int, x: th.Tensor) -> None:
    log.info(
        "layer %d: %s",  # for the curious
        number,
        [round(v, 2) for v in x.tolist()],
    )


log_in_net_forward.register_fake(lambda number, x: None)
log_in_net_forward.register_effect(th._library.effects.EffectType.ORDERED)


class Net(th.nn.Module):
    def forward(self, x):
        for number in range(2):
            x = x * 2
            log_in_net_forward(number, x)
        return x


net = th.compile(Net(), backend="eager")
net(th.ones(3))
