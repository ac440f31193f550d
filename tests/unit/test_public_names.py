"""The names that `limpet` itself has: an explicit list, shown by `dir`, imported at first use."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import limpet

ROOT = Path(__file__).parent.parent.parent
NAMES = """
    Agent AsyncLimpet AsyncSession BadInput Call Clear Compact Conflict Limits Limpet LimpetError Media Message Meter
    NotAStore NotFound Proceed ProviderCount Reply Result Session StoreBusy StoreDamaged StoreFull StoreGone
    StoreProblem StoreReadOnly StoreTooNew Text Thinking TooBig Tool Warn __version__ aopen assistant formats guidance
    message_problems open repair_messages result spent system user
"""


def test_the_public_names() -> None:
    assert limpet.__all__ == sorted(NAMES.split())
    assert dir(limpet) == limpet.__all__
    for name in limpet.__all__:
        assert getattr(limpet, name) is not None


def test_every_error_a_caller_can_catch_is_public() -> None:
    def below(kind: type[limpet.LimpetError]) -> set[str]:
        return {kind.__name__}.union(*map(below, kind.__subclasses__()))

    assert {name for name in below(limpet.LimpetError) if not name.startswith("_")} <= set(limpet.__all__)


def test_nothing_happens_at_import() -> None:
    script = "import sys, limpet; print([name for name in sys.modules if name.startswith('limpet')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['limpet']"


def test_docs_import_from_limpet_itself() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]
    inner = re.compile(r"^\s*(?:from|import) (limpet\.(?!adapters\b)[\w.]+)", re.MULTILINE)
    assert {page.name: inner.findall(page.read_text(encoding="utf-8")) for page in pages} == {
        page.name: [] for page in pages
    }


def test_the_table_imports_no_behaviour() -> None:
    script = (
        "import sys; from limpet.catalogue.table import OPERATIONS, guidance, profile;"
        "[(o.input_schema(), o.output_schema(), o.annotations()) for o in OPERATIONS.values()]; guidance(OPERATIONS);"
        "print(sorted({n.split('.')[1] for n in sys.modules if n.startswith('limpet.')}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    behaviour = {"memory", "session", "outputs", "journal", "window", "recall", "upkeep", "sandbox", "stores", "doors"}
    assert not behaviour & set(re.findall(r"\w+", done.stdout)), done.stdout
