"""`holdfast window` and `holdfast task` as a person uses them, beside a loop in another process."""

from __future__ import annotations
