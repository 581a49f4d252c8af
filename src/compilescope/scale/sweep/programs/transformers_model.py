"""A tiny model of any class of `transformers`, with random weights, compiled and run.

compilescope run transformers_model.py BertModel
"""

import argparse
import json
import logging
import os
import re
import sys
import time
import warnings
from pathlib import Path

# Its helpers stand beside it, also where a loader reads this file.
sys.path.insert(0, str(Path(__file__).parent))

UNBUILT = 3
MOST_PARAMETERS = 50_000_000
"""Chosen: 200 MB in float32: a bound for memory and time of one job."""
SECONDS = 30.0
"""For finding a config and inputs. Chosen: a sweep has thousands of classes; one that takes longer
is reported as not built."""
REPAIRS = 8
"""Of one config, each for an error that names what it lacks. Chosen: a bound."""
LIBRARY = re.compile(r"requires the (?:following )?(?:dependency |library )?[`']?(\w[\w-]*)")


class Unbuilt(Exception):
    """This class can't be built or run in eager mode, with the reason."""


def build(name: str | None = None, *, batch: int = 2, small: bool = True):
    """The model, its positional and its keyword arguments: for `compilescope diff` and `bench`."""
    del small  # There is no other size.
    model, found = built(name or os.environ["COMPILESCOPE_SWEEP_CLASS"], batch, 16)
    return model, (), found.inputs


def built(name: str, batch: int, seq: int):
    """Construct the model and find inputs for it, at the first scale where both succeed."""
    import tiny_config
    import tiny_inputs

    kind = _class(name)
    config = _default_config(kind)
    until = time.monotonic() + SECONDS
    reasons: list[str] = []
    for scale in tiny_config.scales(config):
        if time.monotonic() > until:
            break
        try:
            model = _model(kind, tiny_config.shrunk(config, scale), tiny=scale.divisor > 2)
        except Unbuilt as reason:
            reasons.append(str(reason))
            continue
        except Exception as error:
            if isinstance(error, ImportError):
                raise Unbuilt(_construction_reason(error)) from None
            reasons.append(_construction_reason(error))
            continue
        found = tiny_inputs.find_inputs(model, batch, seq, until)
        if found.inputs is not None:
            return model, found
        reasons.append(_input_reason(found.error))
    raise Unbuilt(_most_telling(reasons))


def _most_telling(reasons: list[str]) -> str:
    """The first that speaks of inputs: then the model itself could be built."""
    told = [reason for reason in reasons if reason.startswith("No inputs")]
    return (told or reasons or ["No scale was tried."])[0]


def _class(name: str):
    import torch
    import transformers

    try:
        kind = getattr(transformers, name)
    except AttributeError:
        raise Unbuilt(f"transformers {transformers.__version__} has no such class.") from None
    except Exception as error:
        raise Unbuilt(_construction_reason(error)) from None
    if getattr(kind, "config_class", None) is None:
        raise Unbuilt("The class has no config class.")
    if kind.forward is torch.nn.Module.forward:
        raise Unbuilt("The class has no forward.")
    return kind


def _default_config(kind):
    try:
        return kind.config_class()
    except Exception as error:
        raise Unbuilt(f"Its config has no defaults ({_line(error)}).") from None


def _model(kind, config, *, tiny: bool):
    """The model in eval mode, its size known before it takes memory."""
    import torch

    size = _size(kind, config)
    # A size that can't be known is that of a tiny config, or too much.
    if size is None:
        size = 0 if tiny else MOST_PARAMETERS
    if size >= MOST_PARAMETERS:
        raise Unbuilt(
            f"No tiny config could be found (the smallest has over {MOST_PARAMETERS:,} parameters)."
        )
    torch.manual_seed(0)
    return kind(config).eval()


def _size(kind, config) -> int | None:
    """The number of parameters, counted without memory. A config that lacks a value gets it here.

    None: the model can't be constructed on the meta device.
    """
    import tiny_repairs
    import torch

    for _ in range(REPAIRS):
        try:
            with torch.device("meta"):
                return sum(weight.numel() for weight in kind(config).parameters())
        except Exception as error:
            if not tiny_repairs.repaired(error):
                if _of_meta(error):
                    return None
                raise
    return None


def _of_meta(error: BaseException) -> bool:
    return isinstance(error, NotImplementedError) or "meta" in str(error).lower()


def _input_reason(error: BaseException | None) -> str:
    import tiny_inputs

    if error is None:
        return "No inputs could be found (out of time)."
    missing = tiny_inputs.missing_names(error, {})
    needs = f"forward needs `{missing[0]}`" if missing else _line(error)
    return f"No inputs could be found ({needs})."


def _construction_reason(error: BaseException) -> str:
    needed = LIBRARY.search(str(error))
    if isinstance(error, ImportError) and needed:
        return f"It needs the package {needed[1]}."
    return f"The model can't be constructed ({_line(error)})."


def _line(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:160]}".rstrip(" .:")


def _run(options) -> None:
    import tiny_inputs
    import torch

    model, found = built(options.model, options.batch, options.seq)
    model, inputs = model.to(options.device), _moved(found.inputs, options.device)
    size = sum(weight.numel() for weight in model.parameters())
    shapes = ", ".join(f"{name} {_shape(value)}" for name, value in inputs.items())
    print(f"{options.model}, {size:,} parameters, on {options.device}; {shapes}", flush=True)
    model.train(options.train)
    compiled = torch.compile(model, backend=options.backend)
    for _ in range(2):
        _step(compiled, inputs, train=options.train)
    if options.shapes > 1:
        inputs = tiny_inputs.made_again(model, options.batch + 1, options.seq, found.attempt)
        _step(compiled, _moved(inputs, options.device), train=options.train)


def _step(model, inputs, *, train: bool) -> None:
    import torch

    with torch.set_grad_enabled(train):
        output = model(**inputs)
    if train:
        values = output.to_tuple() if hasattr(output, "to_tuple") else output
        sum(_float_means(values)).backward()
        model.zero_grad(set_to_none=True)


def _float_means(value):
    """Of every tensor in an output that a gradient can come from."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _float_means(item)
    elif getattr(value, "requires_grad", False):
        yield value.float().mean()


def _moved(inputs: dict, device: str) -> dict:
    return {
        name: value.to(device) if hasattr(value, "to") else value for name, value in inputs.items()
    }


def _shape(value) -> str:
    return str(list(value.shape)) if hasattr(value, "shape") else repr(value)


def _options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", metavar="CLASS")
    parser.add_argument("--list", metavar="PATTERN", help="print the matching classes as JSON")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq", type=int, default=16)
    parser.add_argument(
        "--shapes", type=int, default=1, help="2: one more call, another batch size"
    )
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if not options.list and not options.model:
        parser.error("CLASS or --list PATTERN is required")
    return options


def main() -> None:
    """Build, run in eager mode, compile and run; exit 3 where there is nothing to compile."""
    options = _options()
    warnings.filterwarnings("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    if options.list:
        import tiny_listing

        print(json.dumps(tiny_listing.matching(options.list)))
        return
    try:
        _run(options)
    except Unbuilt as reason:
        print(reason, file=sys.stderr)
        sys.exit(UNBUILT)


if __name__ == "__main__":
    main()
