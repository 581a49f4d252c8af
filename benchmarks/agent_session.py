"""A session of an agent with `compilescope mcp`: a graph break found, fixed and verified.

    python benchmarks/agent_session.py [PROGRAM]

The SDK's own client starts the server in a folder of its own and calls its tools in the order in
which an agent would: run, explain, fix, verify (where the command line has it),
fix_and_write_files, run, compare. Each call and its answer are printed as Markdown, as
docs/guides/mcp.md has them, paths without the temporary folder. Exit status 1: a call
failed, no fix was verified, or the program still breaks.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

PROGRAM = """\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 0:
            y = y + 1
        return y.relu()


torch.manual_seed(0)
model = Gate()
model.compile(backend="eager")
for _ in range(3):
    out = model(torch.randn(4, 8))
print("sum", round(out.sum().item(), 3))
"""


class _Failed(Exception):
    pass


class _Session:
    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        given = ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())
        print(f"\n**`{tool}({given})`**\n")
        told: list[str] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        result = await self._client.call_tool(tool, arguments, progress_callback=hear)
        # The temporary folder says nothing to a reader.
        text = getattr(result.content[0], "text", "").replace(f"{self._folder}/", "")
        print("```text\n" + "\n".join(line.rstrip() for line in text.splitlines()) + "\n```")
        if len(told) > 1:
            print(f"\nProgress on the way: {len(told)} notifications; the last: `{told[-1]}`.")
        if result.is_error or not isinstance(result.structured_content, dict):
            raise _Failed(f"{tool} failed")
        return result.structured_content


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 60 else '"…"'


async def _agent(folder: Path, program: str) -> str:
    """Why it failed; empty: it did not."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "compilescope", "mcp"],
        cwd=folder,
        env=dict(os.environ),
    )
    async with Client(stdio_client(server)) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        print(f"Tools: {', '.join(tools)}.")
        try:
            await _mend(_Session(client, folder), program, tools)
        except _Failed as failed:
            return str(failed)
    return ""


async def _mend(session: _Session, program: str, tools: list[str]) -> None:
    before = await session.call("run", program=program)
    await session.call("explain", run=before["run"], cause=1)
    found = await session.call("fix", program=program)
    if found["verdict"] != "verified":
        raise _Failed("no fix was verified")
    if "verify" in tools:
        await session.call("verify", program=program, patch=found["diff"])
    await session.call("fix_and_write_files", run=found["run"])
    after = await session.call("run", program=program)
    await session.call("compare", before=before["run"], after=after["run"])
    if after["breaks"] or after["recompiles"]:
        raise _Failed(f"{program} still breaks")


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        folder.mkdir()
        program = folder / "gate.py"
        if len(sys.argv) > 1:
            program = folder / Path(sys.argv[1]).name
            shutil.copy(sys.argv[1], program)
        else:
            program.write_text(PROGRAM)
        problem = anyio.run(_agent, folder, program.name)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    raise SystemExit(main())
