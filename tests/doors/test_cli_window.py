"""`holdfast window` and `holdfast task` as a person uses them, beside a loop in another process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast
from doors.cli_runner import Runner
from holdfast.window.controller import Compact
from holdfast.window.messages import assistant, user
