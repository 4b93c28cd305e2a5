"""For how long somebody is believed to live who is silent: whoever holds something says so again and again."""

from __future__ import annotations

from typing import Final

LEASE_S: Final = 5.0
"""Whoever has not been heard of for so long has lost what it held: a job, an order, an attempt, its place in a farm."""
BEAT_S: Final = 1.5
"""How often everybody says that it lives."""
