"""What a node of a Ray cluster has. This function travels to nodes that may lack compilescope."""

from __future__ import annotations


def look() -> dict[str, str]:
    """Facts about the node this runs on. It brings its own imports: it is sent by value, and
    nothing of ours may be there."""
    import importlib.metadata
    import platform
    import socket

    found = {"host": socket.gethostname(), "python": platform.python_version()}
    for package in ("torch", "ray"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = ""
    try:
        from compilescope.base.version import VERSION
    except ImportError:
        return found
    found["compilescope"] = VERSION
    try:
        import msgspec

        from compilescope.measure.machine import this_machine

        found["machine"] = msgspec.json.encode(this_machine()).decode()
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found
