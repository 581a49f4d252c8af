"""Stands in for torch_xla and its like where they are not installed, so that their programs run.

The class is copied into scripts by its source: it knows nothing of compilescope, and imports
whatever it needs inside its methods.
"""

from __future__ import annotations

# mypy: ignore-errors
# What stands below is copied.


class PlainTorch:
    """Stands in for packages of devices that are not installed: everything runs on the CPU.

    Devices are `cpu`, syncs do nothing, backends run the graph as it is.
    """

    PACKAGES = ("torch_xla", "tt_torch", "pjrt_plugin_tt")
    BACKENDS = ("openxla", "openxla_eval", "torchxla_trace_once", "tt", "tt-experimental")
    NUMBERS = ("world_size", "device_count", "process_count")

    def __init__(self) -> None:
        import importlib.util

        self.missing = [name for name in self.PACKAGES if not importlib.util.find_spec(name)]

    def install(self) -> list[str]:
        """Only what is missing is stood in for. Gives the names of those packages."""
        import sys

        if self.missing:
            sys.meta_path.append(self)
        return self.missing

    def add_backends(self) -> None:
        """After `import torch`."""
        import torch

        known = torch._dynamo.list_backends(exclude_tags=())
        for name in self.BACKENDS:
            if name not in known:
                torch._dynamo.register_backend(self._as_it_is, name)

    def on_cpu(self, text: str) -> str:
        """The program's text with the CPU for devices that are not here: no column moves."""
        import io
        import re
        import shutil
        import tokenize

        names = ["xla"] if "torch_xla" in self.missing else []
        names += [] if shutil.which("nvidia-smi") else ["cuda"]
        device = re.compile(rf"""^([a-zA-Z]*["'])(?:{"|".join(names)})(?::\d+)?(["'])$""")
        lines = text.split("\n")
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (tokenize.TokenError, SyntaxError):
            return text
        for before, token in zip([None, *tokens], tokens, strict=False):
            new = token.string
            if token.type == tokenize.STRING and names:
                new = device.sub(r"\1cpu\2", new)
            elif token.type == tokenize.NAME and new == "cuda" and "cuda" in names:
                called = before is not None and before.string == "."
                row = token.end[0] - 1
                new = "cpu" if called and lines[row][token.end[1] :].startswith("()") else new
            if new != token.string:
                row, start, end = token.start[0] - 1, token.start[1], token.end[1]
                new = new.ljust(end - start)
                lines[row] = lines[row][:start] + new + lines[row][end:]
        return "\n".join(lines)

    @staticmethod
    def _as_it_is(graph, inputs, **options):
        return graph.forward

    # As a finder and loader of modules

    def find_spec(self, name, path=None, target=None):
        import importlib.machinery

        if name.partition(".")[0] not in self.missing:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__getattr__ = self.attribute
        self.add_backends()

    def attribute(self, name):
        """Of any module that is stood in for; what is not known does nothing."""
        import torch

        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("device", "xla_device"):
            return lambda *args, **kwargs: torch.device("cpu")
        if name in ("devices", "get_xla_supported_devices"):
            return lambda *args, **kwargs: [torch.device("cpu")]
        if name.endswith(self.NUMBERS):
            return lambda *args, **kwargs: 1
        if name.endswith(("ordinal", "process_index", "local_rank")) and "master" not in name:
            return lambda *args, **kwargs: 0
        known = {
            "optimizer_step": lambda optimizer, *args, **kwargs: optimizer.step(),
            "launch": lambda function, args=(), **kwargs: function(0, *args),
            "spawn": lambda function, args=(), **kwargs: function(0, *args),
            "add_step_closure": lambda function, args=(), **kwargs: function(*args),
            "MpDeviceLoader": lambda loader, *args, **kwargs: loader,
            # What torch's own backend `openxla` asks for.
            "extract_compiled_graph": lambda graph, *args, **kwargs: graph,
            "compile": lambda function=None, *args, **kwargs: function or _Nothing(),
            "is_master_ordinal": lambda *args, **kwargs: True,
            "master_print": print,
            "device_type": lambda *args, **kwargs: "CPU",
            "manual_seed": lambda seed, *args, **kwargs: torch.manual_seed(seed),
        }
        return known.get(name, _Nothing())


class _Nothing:
    """Whatever is done with it, nothing happens."""

    def __call__(self, *args, **kwargs):
        return _Nothing()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
