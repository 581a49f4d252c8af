"""GraphMend rewrites source before it is compiled; nothing of it can be installed by name."""

from peers.tool import Tool

TOOL = Tool(
    "GraphMend",
    not_run=(
        "no package of that name; it is a branch of the Jac compiler in a repository "
        "(savini98/CGO_AE_GraphMend), for Python 3.13 and torch 2.12.1"
    ),
)
