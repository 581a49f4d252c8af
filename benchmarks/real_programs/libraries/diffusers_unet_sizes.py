"""Sample images of three sizes from a small diffusers UNet with the DDIM pipeline."""

import torch
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel
from diffusers.utils import logging
from diffusers.utils.torch_utils import randn_tensor

SIZES = ((12, 16), (16, 24), (20, 32))


class SizedDDIMPipeline(DDIMPipeline):
    """DDIMPipeline that takes the size of the picture with the call."""

    @torch.no_grad()
    def sample(self, height, width, generator, num_inference_steps=3):
        shape = (1, self.unet.config.in_channels, height, width)
        image = randn_tensor(shape, generator=generator)
        self.scheduler.set_timesteps(num_inference_steps)
        for t in self.scheduler.timesteps:
            noise = self.unet(image, t).sample
            image = self.scheduler.step(noise, t, image, generator=generator).prev_sample
        return (image / 2 + 0.5).clamp(0, 1)


def main():
    logging.set_verbosity_error()
    torch.manual_seed(0)
    unet = UNet2DModel(
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(8,),
        down_block_types=("DownBlock2D",),
        up_block_types=("UpBlock2D",),
        norm_num_groups=4,
        add_attention=False,
        mid_block_type=None,
    ).eval()
    pipeline = SizedDDIMPipeline(unet=unet, scheduler=DDIMScheduler(num_train_timesteps=50))
    pipeline.unet = torch.compile(pipeline.unet)
    for height, width in SIZES:
        generator = torch.Generator().manual_seed(height * width)
        picture = pipeline.sample(height, width, generator)
        print(height, width, f"{picture.mean().item():.3f} {picture.std().item():.3f}")


if __name__ == "__main__":
    main()
