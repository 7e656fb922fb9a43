"""BLAKE2b as `hashlib` has it, without OpenSSL, which `hashlib` loads: 3 MB in a process that may
do without.
"""

from __future__ import annotations

from _blake2 import blake2b

__all__ = ["blake2b"]
