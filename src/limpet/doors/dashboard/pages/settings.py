"""Health and settings: where the data is, how long it stays, what is trusted, and a check of the store."""

from __future__ import annotations

from limpet import __version__
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Child, Html, el
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.record import NamedTuple
from limpet.settings import all_keys

DAY_SECONDS = 86_400


class SettingRow(NamedTuple):
    name: str
    value: Child
    why: str = ""


def settings(view: View) -> DrawnPage:
    export = el("a", "Export everything", href=view.link("/export.jsonl"), class_="go", download=True)
    main = html.many(
        parts.heading("Health and settings", export, sub=f"Limpet {__version__}, project {view.project_name}"),
        _health(view),
        el("div", _home(view), _trust(view), class_="split even"),
        _lifetimes(view),
        _values(view),
    )
    return DrawnPage("Health and settings", main, "/settings", live=False)


def _health(view: View) -> Html:
    """A check reads the texts of every project, and names those that are damaged: it is for the machine's person."""
    findings = list(view.hold.store.obstacles())
    beside = None
    if view.own_machine and view.param("check") == "yes":
        findings += view.hold.check()
    elif view.own_machine:
        beside = el("a", "Check every text and file", href=view.link("/settings", check="yes"))
    elsewhere = "" if view.own_machine else "Whoever runs the server sees more with limpet doctor."
    rows = [_finding(found.ok, found.name, elsewhere or found.detail) for found in findings]
    if not rows:
        rows = [_finding(True, "store", "it can be read and written")]
    advice = el(
        "p", el("code", "limpet doctor"), " says the same in a terminal, and more about this machine.", class_="dim"
    )
    return parts.panel("Health", el("ul", rows, class_="rows"), advice, beside=beside)


def _finding(ok: bool, name: str, detail: str) -> Html:
    state = el("span", "ok" if ok else "problem", class_=f"state {'s-active' if ok else 's-error'}")
    return el(
        "li",
        el("div", state, el("strong", name), class_="meta"),
        el("span", parts.with_code(detail), class_="row-text"),
    )


def _facts(facts: tuple[SettingRow, ...]) -> Html:
    def row(fact: SettingRow) -> Html:
        why = el("span", parts.with_code(fact.why), class_="row-text dim") if fact.why else None
        return el("div", el("dt", fact.name), el("dd", fact.value, why))

    return el("dl", [row(fact) for fact in facts], class_="facts one")


def _home(view: View) -> Html:
    hold, ctx = view.hold, view.context()
    stats = ctx.store.outputs.stats(ctx.scope)
    place = hold.store.place if view.own_machine else "on the server"
    folder = hold.root if view.own_machine and view.visit.project and view.visit.project.has_folder else "not here"
    facts = (
        SettingRow(
            "Store",
            el("code", place),
            "Everything of the project but its journal. Back it up with `limpet backup FILE`.",
        ),
        SettingRow("Folder", el("code", folder), "The project whose memory this is; its journal NOTES.md is there."),
        SettingRow(
            "Outputs", f"{stats.entries:,}, {parts.size(stats.total_bytes)}, {parts.size(stats.stored_bytes)} on disk"
        ),
    )
    return parts.panel("Where the data is", _facts(facts))


def _trust(view: View) -> Html:
    seals = view.run("list_seals")
    changed = sum(pin.state != "sealed" for server in seals for pin in server.pins)
    facts = (
        SettingRow(
            "Texts", "data, not instruction", "What people and agents wrote is marked as theirs; all else is data."
        ),
        SettingRow(
            "Repository",
            "not trusted by itself",
            "Its settings and skills count after `limpet trust`; `limpet status` shows.",
        ),
        SettingRow(
            "Tools of other servers",
            f"{len(seals):,} servers, {changed:,} tools changed",
            "A tool that changed since it was first seen is shown until `limpet seals approve`.",
        ),
        SettingRow("Secrets", "masked before storing", "`limpet audit` looks for what is there already."),
    )
    return parts.panel("Trust", _facts(facts))


def _lifetimes(view: View) -> Html:
    rules = view.hold.bounds.outputs
    days = rules.max_age / DAY_SECONDS
    rows = (
        (
            "Notes, memory, handoffs, journal, conversations",
            "until you delete them",
            "or until they expire, where a date was given",
        ),
        ("Outputs", f"{days:,.0f} days after their last use", "[outputs] max_age, in seconds"),
        (
            "All outputs together",
            f"{parts.size(rules.max_cache_size)}",
            "[outputs] max_cache_size; the least used go first",
        ),
    )
    return parts.panel("How long things stay", parts.table(("What", "Stays", "Setting"), rows))


def _values(view: View) -> Html:
    """The values in force beside the defaults. Those of the server's own machine are shown to its person alone."""
    if not view.own_machine:
        return html.many()
    defaults, rows = all_keys(), []
    for name, value in sorted(_flat(view).items()):
        standard = defaults.get(name)
        differs = el("span", "changed", class_="state s-waiting") if value != standard else None
        rows.append((el("code", name), html.many(str(value), " ", differs), str(standard)))
    table = parts.table(("Setting", "Value", "Default"), rows)
    return el("details", el("summary", f"All {len(rows):,} settings"), el("div", table, class_="log"), class_="edit")


def _flat(view: View) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in view.hold.bounds._asdict().items():
        if hasattr(value, "_asdict"):
            flat |= {f"{name}.{inner}": leaf for inner, leaf in value._asdict().items()}
        else:
            flat[name] = value
    return flat


PAGES = (PageRow("settings", settings, menu="Health", letter="c", place=95),)
