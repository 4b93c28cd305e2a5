"""The version of the interface between compiled code and what runs it."""

from __future__ import annotations

ABI_VERSION = 1
