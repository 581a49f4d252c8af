"""Hashes of texts, as `hashlib` has them: that module loads OpenSSL first, which takes longer than
all the hashes of a small log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b as blake2b
    from hashlib import sha256 as sha256
else:
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b  # noqa: F401
    try:
        from _sha2 import sha256  # since Python 3.12
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256  # noqa: F401
