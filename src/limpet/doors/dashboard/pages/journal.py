"""The journal: NOTES.md as it is, with what is wrong beside the lines, and whether its evidence is still true."""

from __future__ import annotations

from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.markdown import markdown
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.errors import LimpetError, NotFound

FRESH = "fresh"
NO_JOURNAL = (
    "There is no journal yet. `limpet journal init` makes NOTES.md in the project's folder: where the work stands, "
    "what was decided and why, and what is open. People edit it in any editor, agents with their tools."
)
WAYS = (("", "Read"), ("source", "Lines"))


def journal(view: View) -> DrawnPage:
    title = parts.heading("Journal", sub="NOTES.md, which people and agents share")
    if view.visit.project is None or not view.visit.project.has_folder:
        words = "The journal is a file in the project's folder, and that folder is not on this server."
        return DrawnPage("Journal", html.many(title, parts.nothing(words)), "/journal")
    try:
        recovered = view.run("recover_journal", level=3)
    except NotFound:
        return DrawnPage("Journal", html.many(title, parts.nothing(NO_JOURNAL)), "/journal")
    except LimpetError as problem:
        return DrawnPage("Journal", html.many(title, parts.nothing(problem.message)), "/journal")
    marks: dict[int, list[str]] = {}
    side = el("aside", _findings(view, marks), _verdicts(view, marks), class_="side")
    is_source = view.param("as") == "source"
    text = (
        _text(recovered.text, marks) if is_source else el("div", markdown(recovered.text), class_="text-card journal")
    )
    body = el("div", parts.choices(view, "as", WAYS, "source" if is_source else ""), text)
    main = html.many(title, el("div", body, side, class_="with-side"))
    return DrawnPage("Journal", main, "/journal")


def _text(text: str, marks: dict[int, list[str]]) -> Html:
    def row(number: int, line: str) -> Html:
        mark = marks.get(number)
        kind = "head" if line.startswith("#") else None
        note = el("em", "  ⟵ ", "; ".join(dict.fromkeys(mark))) if mark else None
        return el("span", line or " ", note, data_n=number, id=f"L{number}", class_="marked" if mark else kind)

    return el("pre", [row(at, line) for at, line in enumerate(text.split("\n"), 1)], class_="lines wrap", tabindex=0)


def _line(view: View, number: int) -> Html:
    """A line of the journal, where it is shown with its number."""
    return el("a", f"line {number:,}", href=view.link("/journal", **{"as": "source"}) + f"#L{number}")


def _findings(view: View, marks: dict[int, list[str]]) -> Html:
    if not view.may("lint_journal"):
        return parts.panel("Lint", parts.nothing("Checking the journal needs a token that may write."))
    findings = view.run("lint_journal").findings
    for finding in findings:
        marks.setdefault(finding.line, []).append(finding.rule)
    if not findings:
        return parts.panel("Lint", el("p", parts.state("fresh"), " nothing is wrong", class_="dim"))
    rows = [el("li", _line(view, finding.line), f" {parts.line(finding.message, 160)}") for finding in findings]
    return parts.panel("Lint", el("ul", rows, class_="rows"))


def _verdicts(view: View, marks: dict[int, list[str]]) -> Html:
    if not view.may("verify_journal"):
        return html.many()
    checked = view.run("verify_journal", check=True).checked
    for quote in checked:
        if quote.verdict.state != FRESH:
            marks.setdefault(quote.line, []).append(quote.verdict.state)
    if not checked:
        return parts.panel("Evidence", parts.nothing("The journal cites no file."))
    rows = [
        el(
            "li",
            parts.state(quote.verdict.state),
            " ",
            _line(view, quote.line),
            f" {parts.line(quote.what, 80)}",
            el("span", parts.line(f"{quote.before} {quote.verdict.detail}".strip(), 120), class_="row-text dim"),
        )
        for quote in checked
    ]
    return parts.panel("Evidence", el("ul", rows, class_="rows"))


PAGES = (PageRow("journal", journal, menu="Journal", letter="j", place=60),)
