"""Commands that look after a store: doctor, audit, purge, export and import, backup and restore, clusters, tokens."""

from __future__ import annotations

from limpet.doors.cli.commands import (
    PATH,
    Command,
    Group,
    argument,
    flag,
    number,
    option,
    optional,
    repeated,
)

TRANSFER = "limpet.doors.cli.transfer"
OWN = "limpet.doors.cli.own_logic"
EXPIRES = "30d"
TENANT = option("--tenant", "NAME", "Only those of this tenant. [default: all]")

# One paragraph per command, laid out by hand: a formatter would need twice the lines.
# fmt: off
CARE = (
    Command("doctor", "limpet doctor\nlimpet doctor --url https://memory.example.org",
        "Check settings, store, checksums and file permissions; with --url a server instead, from where its clients "
        "stand. Exits with 5 when something is wrong.",
        (option("--url", "ADDRESS", "A server of `limpet serve`: reached, set up and let in well?"),
            option("--token", "TOKEN", "For --url. LIMPET_TOKEN keeps it out of `ps`.")),
        run="limpet.doors.cli.doctor:doctor"),
    Command("index", "limpet index\nlimpet index --project parser\nLIMPET_SET=recall.model=static limpet index",
        "Make the vectors that recall compares texts by, for every text of the project that has none yet. With the "
        "extra limpet[embed] they are a transformer's, which takes a second for some ten to a hundred texts. It can be "
        "interrupted at any time and goes on where it was; doing it again does nothing.",
        run=f"{TRANSFER}:index"),
    Command("audit", "limpet audit\nlimpet audit --only secret --json",
        params=("only", number("--stale-days", "N", "Unchanged for so many days is stale; 90 unless given."), "limit")),
    Command("purge",
        "limpet purge --origin import --since 7d --dry-run\nlimpet purge --origin 'tool/web_*'\nlimpet undo\n"
        "limpet purge --id note_1772445300000 --version 2 --forever",
        "Look with --dry-run first. With --session only what this session wrote goes.",
        (option("--origin", "WHO", "agent, person, import, tool, tool/NAME or agent/mcp."),
            option("--id", "ID", "One entry by its id or key, in place of an origin."),
            number("--version", "N", "One earlier version of it, out of history."),
            "since", "dry_run", "forever")),
)

COPIES = (
    Command("export",
        "limpet export memory.jsonl\nlimpet export | gzip > memory.jsonl.gz\nlimpet export --markdown notes",
        "Write the project with its history and its outputs as JSON Lines, to standard output unless a file is named. "
        "With --markdown, as a folder to read and to keep in git: a file per entry, conversation and output, without "
        "history.",
        (argument("file", PATH, default="-"), flag("--force", "Overwrite the file if it exists."),
            option("--markdown", "FOLDER", "Write Markdown there: a new folder, or an earlier export of this kind."),
            flag("--without-outputs", "Leave out kept outputs and what is known of deleted ones.")),
        run=f"{TRANSFER}:export"),
    Command("import",
        "limpet import memory.jsonl --project copy --exact\ngunzip -c memory.jsonl.gz | limpet import -\n"
        "limpet import transcript claude-code --dry-run\nlimpet import transcript rollout.jsonl --session parser\n"
        "limpet import server-memory memory.jsonl --dry-run\nlimpet import basic-memory ~/basic-memory\n"
        "limpet import chatgpt export.zip --dry-run",
        "Read an export into an empty project, as data with the origin `import`; with --exact, exactly as it was. "
        "- reads standard input. All of it, or nothing. "
        "`import transcript` takes in a session that a coding agent kept: messages as messages, big results as "
        "outputs. It names a file, or an agent whose last session in this project is meant; doing it again adds only "
        "what is new. `import chatgpt FILE` and `import claude-chat FILE` take in every conversation of an export of "
        "these programs, a session each. "
        "`import server-memory FILE`, `mem0 FILE`, and `anthropic-memory`, `basic-memory`, `claude-memory`, "
        "`cursor-rules` and `copilot-instructions` with a FOLDER "
        "take what these tools keep into this project's memory; doing it twice adds nothing. `import store FILE` takes "
        "in what another store holds, such as one that came with a repository, as data with the origin `import`.",
        (argument("file", PATH), optional("source", PATH, metavar="[FILE|AGENT|FOLDER]"),
            flag("--exact", "An export of your own: origins, pins and seals count again as they did."),
            flag("--merge", "Add to what the project has; stops if an entry differs."),
            flag("--all", "Of a transcript: every session of the agent in this project.", to="every"),
            flag("--dry-run", "Of a transcript, chats or another tool: say what would be added.")), session=True,
        run=f"{TRANSFER}:import_"),
    Command("backup",
        "limpet backup /media/stick/memory.db\nlimpet backup memory.db --store postgresql://db.example.org/limpet",
        "Copy the whole store, every tenant and project of it, as it is at one moment. The copy is an embedded store, "
        "whichever kind of store it is made of, and can be put back into either kind with `limpet restore`. It is "
        "read again before it gets its name. Exits with 5 when something in the store itself is damaged.",
        (argument("file", PATH),), run=f"{TRANSFER}:backup"),
    Command("restore",
        "limpet restore /media/stick/memory.db\nlimpet restore memory.db --store postgresql://db.example.org/limpet",
        "Put a backup into an empty store of either kind: all of it, or nothing. Every checksum is compared first.",
        (argument("file", PATH),), run=f"{TRANSFER}:restore"),
)

SERVERS = (
    Group("store", "The store as a whole: the servers of a cluster that its rows are on."),
    Command("store distribute",
        "limpet store distribute --dry-run\nlimpet store distribute --store postgresql://db.example.org/limpet",
        "Distribute a store over the servers of a Citus cluster by tenant, after a look whether that can be done. "
        "Tables that are distributed already stay as they are. Writers wait while rows are moved.",
        (flag("--dry-run", "Look, say what would be done, and do nothing."),), run=f"{TRANSFER}:distribute"),
)

ACCESS = (
    Group("token", "Tokens for the HTTP server: who may come in, where, and until when."),
    Command("token create",
        "limpet token create --name alice --scope write --project parser --expires 30d\n"
        "limpet token create --person --name alice --scope write --project parser\n"
        "limpet token create --name ci --scope read --project '*' --expires never",
        "Make a token for the project and print it. It is shown this once; only a hash of it is kept. "
        "--project '*' is every project of the tenant. It is for an agent or a program; with --person, for a person "
        "who signs in to the dashboard with it. What comes from there is the word of a person.",
        (option("--name", "NAME", "Who it is for; the history of every change shows it.", required=True),
            option("--scope", "SCOPE", "read, write, or admin, each with what is before it.", required=True),
            repeated("--also", "PROJECT", "Another project it is for, beside that of --project."),
            option("--tenant", "NAME", "Whose projects these are. [default: the tenant of the settings]"),
            option("--expires", "TIME", f"12h, 30d, 8w or never. [default: {EXPIRES}]", default=EXPIRES),
            flag("--person", "It is for a person, to sign in with; an agent must not have it.")),
        run=f"{OWN}:create_token"),
    Command("token list", "limpet token list", "The tokens there are, and when each was last used, to the hour.",
        (TENANT,), run=f"{OWN}:list_tokens"),
    Command("token revoke", "limpet token revoke 3f9a1c2b77e0", "Close a token for good; servers notice in a second.",
        (argument("id"),), run=f"{OWN}:revoke_token"),
    Command("token history", "limpet token history", "Who made and revoked tokens, and when; newest first.", (TENANT,),
        run=f"{OWN}:token_history"),
)

COMMANDS = (*CARE, *COPIES, *SERVERS, *ACCESS)
