"""Journals for tests: an example as people and agents write it, and documents of every strange kind, generated."""

from __future__ import annotations

from hypothesis import strategies as st

# Hostile pieces: what could be taken for structure, or break a table, a list, a heading, a comment or a quote.
PIECES = [
    *("|", "\\", "\\|", "`", "``", "```", "~~~", "#", "## ", "---", "===", "<!--", "-->", "<br>", "<BR/>", "- ", "* "),
    *(
        "[ ] ",
        "[x]",
        "(blocking: x)",
        "(depends on: ",
        "(ETA: 1)",
        ")",
        "**Rationale**: ",
        "**Evidence**:",
        "\n",
        "\r\n",
    ),
    *(
        "1. ",
        "> ",
        "${PROJECT_ROOT}/a.py:1]",
        "[RESOLVED] ",
        "Waiting: ",
        '" [user]',
        "\t",
        " ",
        "é",
        "字",
        "🙂",
        "\u2028",
    ),
    *(
        "\x0b",
        "<<<<<<< a",
        ">>>>>>> b",
        "=======",
        "&#32;",
        "word",
        "&",
        "<pre>",
        "+++",
        "| --- |",
        "_",
        "\u00a0",
        "\x85",
    ),
]
hostile = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), min_size=1, max_size=8).map("".join)
# What an operation lets through: text that UTF-8 can hold, without NUL.
words = hostile.map(lambda text: "".join(c for c in text if c != "\0" and not "\ud800" <= c <= "\udfff")).map(
    lambda text: text.replace("\r\n", "\n").replace("\r", "\n").strip() or "x"
)
line = words.map(lambda text: " ".join(text.split()) or "x")

BLOCKS = [
    "---\ntitle: x\n---\n",
    "# Our notes\n",
    "## Session Continuity\n<!-- read first -->\n",
    "### Active Context\n- **Current Bead**: bd-1 (the lexer)\n- **Reasoning State**: half way\n  through\n",
    (
        "### Lightweight Identifiers\n| Identifier | Purpose | Last Verified |\n|--|:-:|--|\n"
        "| `${PROJECT_ROOT}/a.py:1` | x | 10:00Z |\n"
    ),
    "### Decision Log\n",
    (
        "### Decision Log\n\n#### 2026-01-02T03:04:05Z - One\n**Decision**: a\n**Rationale**: b\n"
        "more of it\n**Evidence**:\n- `q|w` [${PROJECT_ROOT}/a.py:3]\n\n**Test Scenarios**:\n1. a\n"
        "2. b\n3. c\n\n"
    ),
    "### Pending Questions\n- [ ] why?\n- [x] how?\n  like this\n\n\n",
    "## Active Sub-Goals\n* [ ] build (blocking: parts)\n",
    (
        "## Discovered Technical Debt\n| ID | Description | Severity | Found By | Sprint |\n"
        "|----|----|----|----|----|\n| TD-007 | `a|b` breaks | LOW | me | S1 |\n\nsome prose\n"
    ),
    "## Blockers & Dependencies\n- Waiting: keys (ETA: 2026-05-01)\n- Blocked: law\n",
    "## Session Continuity Log\n| Timestamp | Agent | Summary |\n|---|---|---|\n| 2026-01-01T00:00Z | a | began |\n",
    (
        "## Decision Archive\n| Date | Decision | Rationale | Decided By |\n|---|---|---|---|\n"
        "| 2026-01-01 | Use B | fast | c |\n"
    ),
    "```md\n## Decision Log\n# no heading\n```\n",
    "````\n```\n## Blockers\n```\n````\n",
    "~~~\n### Pending Questions\n~~~~\n",
    "<!--\n## Active Sub-Goals\n-->\n",
    "<pre>\n# not one\n</pre>\n",
    "Underlined\n----------\ntext below\n",
    "> ## quoted\n> text\n",
    "    # indented code\n",
    "plain words\nand more\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "- a list\n  - inside\n\n    paragraph\n",
    "\n\n",
    "trailing spaces   \n\ttab\n",
    "bytes \udcff\udc80 that are no UTF-8\n",
    "* * *\n",
    "## Technical Debt ##\n",
    "no end",
    "```\nnever closed\n",
    "<!-- never closed\n",
]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Any Markdown people might have: blocks in any order, with any line ends, perhaps with a BOM or cut off."""
    text = "".join(draw(st.lists(st.one_of(st.sampled_from(BLOCKS), hostile.map(lambda t: t + "\n")), max_size=12)))
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    if draw(st.booleans()):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return ("\ufeff" if draw(st.booleans()) else "") + text
