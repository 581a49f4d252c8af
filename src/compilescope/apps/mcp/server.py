"""The server: tools and resources over stdin and stdout, until stdin ends or a signal comes."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, UnexpectedToolError
from mcp.server.mcpserver.exceptions import ToolError as SdkToolError
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ContentBlock, InputRequiredResult, Resource, TextContent
from pydantic import ValidationError

from compilescope.apps.mcp.answers import readable
from compilescope.apps.mcp.calls import ToolCalls
from compilescope.apps.mcp.places import read_run_name
from compilescope.apps.mcp.tools import CommandTools, FailedCall
from compilescope.base.errors import ToolError
from compilescope.base.folders import Folders
from compilescope.base.processes.outcome import CHUNK
from compilescope.base.texts import one_line
from compilescope.base.version import VERSION
from compilescope.record.home import list_runs

_MOST_RUNS = 100
"""Resources that are listed, newest first. Chosen: more than an agent looks through; a run that is
not listed can be read all the same."""
_SCHEME = "compilescope://runs/"
_VIEWS = {
    "": ("summary", "What the run lost and where to start."),
    "/explanation": ("explanation", "Why each cause happens and what to change."),
    "/graphs": ("graphs", "The captured graphs, and what ended each."),
    "/guards": ("guards", "The guards of each graph, by the line that they come from."),
}
_INSTRUCTIONS = """\
A debugger for torch.compile. Call run with a short run of a program; explain says why each cause
happens; fix searches for verified changes and changes no file; fix_and_write_files applies one of
its answers; run again, and compare both runs. null is unknown, never zero; unknown and unverified
are no success. Where a text names a command `compilescope X`, call the tool X."""


@dataclass(frozen=True)
class ServerOptions:
    """What the user allowed."""

    home: Path
    """Where runs are stored, absolute."""
    folders: tuple[Path, ...]
    """Where programs may be."""
    around: Mapping[str, str]
    """The environment that programs get."""
    python: str = ""
    jobs: int = 2


class RunsServer(MCPServer[Any]):
    """The SDK's server, with runs as resources and our errors as they are."""

    def __init__(self, calls: ToolCalls) -> None:
        super().__init__(
            "compilescope", instructions=_INSTRUCTIONS, version=VERSION, log_level="ERROR"
        )
        self._calls = calls
        for each in CommandTools(calls).all:
            self.add_tool(each.call, title=each.title, annotations=each.annotations)
        for path, (name, words) in _VIEWS.items():
            self.resource(f"{_SCHEME}{{run}}{path}", name=f"run {name}", description=words)(
                self._reader(name)
            )

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """An error of ours is told as its command tells it."""
        try:
            result = await super().call_tool(name, arguments, context)
        except SdkToolError as error:
            cause = error.__cause__
            if isinstance(cause, FailedCall):
                return _result(cause.answer.text, cause.answer.model_dump(mode="json"), error=True)
            if isinstance(cause, ToolError):
                return _result(" ".join(filter(None, (cause.message, cause.hint))), error=True)
            if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
                return _result(_wrong_arguments(cause), error=True)
            raise
        if isinstance(result, CallToolResult) and result.structured_content is not None:
            return _result(result.structured_content["text"], result.structured_content)
        return result

    async def run_stdio_async(self) -> None:
        """Until stdin ends. As the SDK's own, but a signal ends it too."""
        lines: Any = _StdinLines(0)  # The SDK asks for nothing but its lines.
        async with stdio_server(stdin=lines) as (read, write):
            low = self._lowlevel_server
            await low.run(read, write, low.create_initialization_options())

    async def list_resources(self) -> list[Resource]:
        runs, _ = await anyio.to_thread.run_sync(list_runs, self._calls.home)
        return [
            Resource(
                uri=f"{_SCHEME}{folder.name}",
                name=folder.name,
                description=one_line(" ".join(header.command))[:200],
                mime_type="text/plain",
            )
            for folder, header in runs[:_MOST_RUNS]
        ]

    def _reader(self, view: str) -> Any:
        words = {"summary": ["show"], "explanation": ["explain"]}.get(
            view, ["show", f"--section={view}"]
        )

        async def read(run: str) -> str:
            try:
                ended = await self._calls.read(*words, *read_run_name(run))
                if ended.status != 0:
                    raise ended.error
            except ToolError as error:
                raise ResourceNotFoundError(error.message) from None
            return readable(ended.stdout.decode("utf-8", "replace"))

        return read


def _result(text: str, value: Any = None, *, error: bool = False) -> CallToolResult:
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    return CallToolResult(content=content, structured_content=value, is_error=error)


def _wrong_arguments(error: ValidationError) -> str:
    return " ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}." for each in error.errors()[:5]
    )


def serve(options: ServerOptions) -> int:
    """Until the client goes away, or a signal comes: gives the exit status."""
    return anyio.run(_serve, options)


async def _serve(options: ServerOptions) -> int:
    calls = ToolCalls(
        options.home,
        Folders(options.folders, "mcp"),
        options.around,
        python=options.python,
        jobs=options.jobs,
    )
    server = RunsServer(calls)
    ended: list[int] = []
    async with anyio.create_task_group() as group:

        async def hear() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as come:
                async for number in come:
                    ended.append(128 + number)
                    # Nobody waits for what could still be found.
                    calls.kill()
                    group.cancel_scope.cancel()

        group.start_soon(hear)
        await server.run_stdio_async()
        group.cancel_scope.cancel()
    return ended[0] if ended else 0


class _StdinLines:
    """The lines of stdin. The SDK reads them in a thread, which no signal would end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._kept = b""
        self._ended = False

    def __aiter__(self) -> _StdinLines:
        return self

    async def __anext__(self) -> str:
        while b"\n" not in self._kept and not self._ended:
            try:
                await anyio.wait_readable(self._descriptor)
            except PermissionError:
                await anyio.lowlevel.checkpoint()  # A file: there is always something to read.
            data = os.read(self._descriptor, CHUNK)
            self._kept += data
            self._ended = not data
        line, _, self._kept = self._kept.partition(b"\n")
        if not line and self._ended:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")
