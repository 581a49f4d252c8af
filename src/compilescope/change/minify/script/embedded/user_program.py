# mypy: ignore-errors
"""Takes a module out of the user's program, just before the line that breaks.

The class is copied into the repro by its source: it knows nothing of compilescope.
"""


class UserProgram:
    """Runs a script until a line is about to run, and takes what is being called there."""

    class Reached(BaseException):
        """Leaves the script."""

    def __init__(self, script, arguments, file, line, function):
        self.script, self.arguments = script, arguments
        self.file, self.line, self.function = file, line, function
        self.codes = {}  # Code object -> is the line in it?
        self.entered = {}  # Frame -> what it was called with.
        self.calls = None
        self.grad = True  # Were gradients on?

    def calls_at_line(self, change=lambda text: text):
        """What was being called at the line, innermost first: (callable, args, kwargs). Empty if
        the script never gets there. `change` may change the script's text."""
        import os
        import sys
        import threading
        import tokenize
        import types

        import torch

        with tokenize.open(self.script) as stream:
            text = change(stream.read())
        main = types.ModuleType("__main__")
        main.__file__ = self.script
        before = sys.modules["__main__"], list(sys.argv), list(sys.path)
        sys.modules["__main__"] = main
        sys.argv[:] = [self.script, *self.arguments]
        sys.path.insert(0, os.path.dirname(self.script))
        torch.compiler.set_stance("force_eager")  # All code runs as it stands.
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            exec(compile(text, self.script, "exec", dont_inherit=True), vars(main))
        except self.Reached:
            pass
        except SystemExit:
            pass  # It ended before it got there.
        finally:
            sys.settrace(None)
            threading.settrace(None)
            torch.compiler.set_stance("default")
            sys.argv[:] = before[1]
        return self.calls or []

    def _enter(self, frame, event, arg):
        code = frame.f_code
        if code not in self.codes:
            self.codes[code] = self._has_line(code)
        if not self.codes[code]:
            return None
        self.entered[frame] = self._arguments(frame)
        return self._step

    def _step(self, frame, event, arg):
        if event == "line" and frame.f_lineno == self.line:
            self.calls = list(self._calls(frame))
            self.grad = self._grad_enabled()
            self.named = frame.f_code.co_filename  # As Dynamo names the file.
            raise self.Reached
        return self._step

    def _grad_enabled(self):
        import torch

        return torch.is_grad_enabled()

    def _has_line(self, code):
        import os

        # A comprehension is a function of its own only before Python 3.12.
        comprehensions = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
        if code.co_name != self.function and not {code.co_name, self.function} & comprehensions:
            return False
        if os.path.realpath(code.co_filename) != self.file:
            return False
        return any(line == self.line for _, _, line in code.co_lines())

    def _arguments(self, frame):
        """What a function was called with, before it changes its variables."""
        code, values = frame.f_code, frame.f_locals
        names = code.co_varnames
        last = code.co_argcount + code.co_kwonlyargcount
        args = [values[name] for name in names[: code.co_argcount]]
        kwargs = {name: values[name] for name in names[code.co_argcount : last]}
        if code.co_flags & 4:
            args += values[names[last]]
            last += 1
        if code.co_flags & 8:
            kwargs.update(values[names[last]])
        return tuple(args), kwargs

    def _calls(self, frame):
        """The modules that are being called; where there is none, the function itself."""
        import gc
        import types

        import torch

        found, above = [], frame
        while above is not None:
            if above.f_code is torch.nn.Module._call_impl.__code__:
                values = above.f_locals
                if "_orig_mod" not in values["self"]._modules:  # What torch.compile returns.
                    found.append((values["self"], tuple(values["args"]), dict(values["kwargs"])))
            above = above.f_back
        if not found:
            for each in gc.get_referrers(frame.f_code):
                if type(each) is types.FunctionType and each.__code__ is frame.f_code:
                    found.append((each, *self.entered[frame]))
                    break
        return found


def breaks_while(run):
    """The graph breaks that Dynamo reports while `run` runs, as it writes them to its log."""
    import logging

    import torch

    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    torch._logging.set_logs(graph_breaks=True)
    keep = Keep()
    loggers = [
        logging.getLogger(name)
        for name in list(logging.root.manager.loggerDict)
        if name.endswith("__graph_breaks")
    ]
    for logger in loggers:
        logger.addHandler(keep)
    try:
        run()
    finally:
        for logger in loggers:
            logger.removeHandler(keep)
    return found
