"""`TORCH_TRACE=folder`, then tlparse on the log: every page that it writes is read."""

import html
import re
import sys
from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program


def watch(program: Program, folder: Path) -> Answer:
    file = copied(program, folder)
    ran = asked(python(file.name), folder, {"TORCH_TRACE": str(folder / "trace")})
    logs = sorted((folder / "trace").glob("*.log"))
    if not logs:
        return ran
    command = Path(sys.executable).with_name("tlparse")
    answer = asked([command, logs[0], "-o", "pages", "--no-browser"], folder)
    answer.cpu_s += ran.cpu_s
    answer.status = answer.status or ran.status
    pages = sorted(page for page in (folder / "pages").rglob("*") if page.is_file())
    reasons = [page for page in pages if "graph_break_reason" in page.name]
    answer.count = len(reasons)
    # Far apart: what stands on one page says nothing of the next.
    shown = [f"{page.name}\n{page_text(page)}" for page in pages if page.stem != "raw"]
    answer.text += ("\n" * 40).join(shown)
    return answer


def page_text(page: Path) -> str:
    """As a browser shows it."""
    text = page.read_text(errors="replace")
    if page.suffix != ".html":
        return text
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"<(br|li|p|tr|div|h\d)\b[^>]*>", "\n", text)
    return html.unescape(re.sub(r"<[^>]+>", "", text))


TOOL = Tool("tlparse", watch=watch, packages=("tlparse",))
