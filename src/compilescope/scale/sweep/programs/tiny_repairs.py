"""Repairs of what a config's defaults leave out or a module has built in, guided by an error."""

import linecache
import re
import traceback

from tiny_config import HEAD_COUNT, HEAD_DIM, WIDTH, heads_of, hidden_of, shares
from transformers import PretrainedConfig

SPLIT = re.compile(r"split_sizes to sum exactly to (\d+) .*split_sizes=\[([\d, ]+)\]")


def repaired(error: BaseException) -> bool:
    """Give a value to a field that is None by default and that the model can't be made without."""
    words = set(re.findall(r"\w+", str(error)))
    if "Validation" in words:
        return False
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        config = frame.f_locals.get("config")
        if not isinstance(config, PretrainedConfig):
            continue
        named = [name for name in words if vars(config).get(name, 0) is None]
        if not named and "NoneType" in words:
            named = _lacking(config, frame.f_code, line)
        for name in named:
            try:
                setattr(config, name, _likely(name, config))
            except Exception:
                continue  # Not a number.
            return True
    return False


def _lacking(config, code, line: int) -> list[str]:
    """The fields without a value that this line reads, by their own name or the module's."""
    absent = [name for name, value in vars(config).items() if value is None]
    path = code.co_filename
    call = "".join(linecache.getline(path, number) for number in range(line, line + 10))
    read = set(re.findall(r"config\.(\w+)", call))
    body = "".join(linecache.getline(path, n) for n in range(code.co_firstlineno, line))
    for word in re.findall(r"\w+", linecache.getline(path, line)):
        read.add(word)
        read.update(re.findall(rf"\b{word} = config\.(\w+)", body))
    return [name for name in absent if name in read]


def _likely(name: str, config) -> int:
    hidden = (hidden_of(config) or [32])[0]
    heads = (heads_of(config) or [1])[0]
    if HEAD_DIM.search(name):
        return hidden // heads
    if HEAD_COUNT.search(name):
        return heads
    return hidden if WIDTH.search(name) else 2


def split_again(error) -> bool:
    """Fit a list of sizes that a module has built in, such as rotary sections, to this width."""
    told = SPLIT.search(str(error))
    if not told:
        return False
    total, sizes = int(told[1]), [int(size) for size in told[2].split(",")]
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = frame.f_locals.get("self")
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if isinstance(value, (list, tuple)) and list(value) == sizes:
                setattr(module, name, shares(sizes, total))
                return True
    return False
