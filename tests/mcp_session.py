"""The server of `compilescope mcp`, asked by the SDK's own client over stdin and stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from waiting import until


@dataclass
class Session:
    """A client that is connected to a server of its own."""

    portal: BlockingPortal
    client: Client
    told: list[str] = field(default_factory=list)
    """What the server told of its progress."""

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        return self.portal.call(self._call, tool, arguments)

    def value(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The typed answer of a call that does not fail."""
        result = self.call(tool, **arguments)
        assert not result.is_error, text(result)
        return result.structured_content

    def error(self, tool: str, **arguments: Any) -> str:
        """What a call that fails says."""
        result = self.call(tool, **arguments)
        assert result.is_error, text(result)
        return text(result)

    def both(self, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
        """Several calls at once."""
        futures = [self.portal.start_task_soon(self._call, *call) for call in calls]
        return [future.result() for future in futures]

    def cancel_when(self, come: Path, tool: str, **arguments: Any) -> None:
        """Call it, and cancel the call once there is such a file."""
        self.portal.call(self._cancelled, come, tool, arguments)

    def read(self, uri: str) -> str:
        return self.portal.call(self.client.read_resource, uri).contents[0].text

    async def _call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        return await self.client.call_tool(tool, arguments, progress_callback=self._hear)

    async def _hear(self, number: float, total: float | None, message: str | None) -> None:
        self.told.append(message or "")

    async def _cancelled(self, come: Path, tool: str, arguments: dict[str, Any]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._call, tool, arguments)
            await anyio.to_thread.run_sync(until, come.exists)
            group.cancel_scope.cancel()


def text(result: CallToolResult) -> str:
    return result.content[0].text


@contextmanager
def connected(folder: Path, *words: str) -> Iterator[Session]:
    """A server that was started in this folder, for as long as the block runs. It says nothing of a
    fault on stderr."""
    log = folder.with_name(f"{folder.name}-stderr")
    with log.open("w") as errors, start_blocking_portal() as portal:
        started = StdioServerParameters(
            command=sys.executable,
            args=["-m", "compilescope", "mcp", *words],
            cwd=folder,
            env=dict(os.environ),
        )
        client = Client(stdio_client(started, errlog=errors))
        with portal.wrap_async_context_manager(client):
            yield Session(portal, client)
    assert "Traceback" not in log.read_text()
