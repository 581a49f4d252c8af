"""Files as SARIF names them: relative to a base that the log declares, or as absolute URIs.

Invariant: whatever a file is called, the result is a valid URI reference.
"""

from __future__ import annotations

import posixpath
import re
from urllib.parse import quote

from compilescope.model.stack import origin_of

SOURCES = "SRCROOT"
_PACKAGES = re.compile(r"^(.*[/\\](?:site|dist)-packages)[/\\]")
_DRIVE = re.compile(r"^[A-Za-z]:[/\\]")


class UriBases:
    """The folders that the URIs of one run are relative to."""

    def __init__(self, root: str, cwd: str) -> None:
        # A scanner looks for files from the top of the repository, and that is where `check` is
        # started; the program's own folder is often one below.
        self.sources = cwd if cwd and _inside(root, cwd) is not None else root
        self._packages: dict[str, str] = {}

    def location(self, file: str) -> dict[str, str]:
        """An `artifactLocation`."""
        found = _PACKAGES.match(file)
        if found and origin_of(file) in ("library", "torch"):
            base = self._packages.setdefault(found[1], self._package_name())
            return {"uri": _quoted(file[found.end() :]), "uriBaseId": base}
        inside = _inside(file, self.sources) if self.sources else None
        if inside:
            return {"uri": _quoted(inside), "uriBaseId": SOURCES}
        return {"uri": file_uri(file)}

    def declared(self) -> dict[str, dict[str, str]]:
        """`originalUriBaseIds`, once every location has been asked for."""
        folders = {name: folder for folder, name in self._packages.items()}
        if self.sources:
            folders = {SOURCES: self.sources, **folders}
        return {name: {"uri": folder_uri(folder)} for name, folder in folders.items()}

    def _package_name(self) -> str:
        number = len(self._packages)
        return "SITE_PACKAGES" + (f"_{number + 1}" if number else "")


def file_uri(file: str) -> str:
    """`file:///...`; what is no path at all (`<string>`, nothing) becomes a relative reference."""
    if _DRIVE.match(file):
        return "file:///" + quote(_bytes(_plain(file)), safe="/:")
    if file.startswith("/"):
        return "file://" + _quoted(_plain(file))
    return _quoted(file) or "unknown"


def folder_uri(folder: str) -> str:
    """With the slash at the end that a base must have."""
    uri = file_uri(folder)
    return uri if uri.endswith("/") else f"{uri}/"


def _inside(path: str, folder: str) -> str | None:
    """`path` relative to `folder`; None where it lies elsewhere."""
    path, folder = _plain(path), _plain(folder).rstrip("/")
    if path.rstrip("/") == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else None


def _plain(path: str) -> str:
    """With slashes, and without `..`, `.` and doubled slashes."""
    if _DRIVE.match(path):
        path = path.replace("\\", "/")
    return re.sub("^/+", "/", posixpath.normpath(path)) if path else ""


def _quoted(path: str) -> str:
    return quote(_bytes(path), safe="/")


def _bytes(text: str) -> bytes:
    # The bytes of a name that is not UTF-8, where Python kept them as surrogates.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
