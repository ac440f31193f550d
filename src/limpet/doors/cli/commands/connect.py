"""Commands that connect agents: configuration, hooks, servers on standard input and output or HTTP, and proxies."""

from __future__ import annotations

from limpet.doors.cli.commands import (
    CHOICE,
    CONFIRM,
    COUNT,
    FOLDER,
    REST,
    SWITCH,
    Command,
    Group,
    argument,
    flag,
    option,
    optional,
    repeated,
)

SETUP = "limpet.doors.cli.setup"
ON_STDIO = "limpet.doors.cli.stdio_servers"
PROJECT = "limpet.doors.cli.projects"
DEFAULT_PROFILE = "core"
PORT = 7438
WORKERS_MAX = 64  # processes; more than any one machine has use for
PROFILE = option(
    "--profile",
    "NAME",
    "core (thirteen tools), coding (fourteen), full, or agent (full and sub-sessions). [default: core]",
    default=DEFAULT_PROFILE,
)
STRUCTURED = flag("--structured", "Results of tools as values too, with schemas, for programs. Models read the text.")
LOG_JSON = flag("--log-json", "A line of JSON on standard error for every call.")
TRACES = flag("--traces", "Send an OpenTelemetry span for every call (OTEL_… say where to).")
KEEPING = (
    option(
        "--threshold", "BYTES", "Results of so many bytes or more are kept. [default: 4096]", COUNT, bounds=(1, None)
    ),
    flag("--strict", "Block tools that changed since `limpet seals` first saw them."),
    flag("--keep-schemas", "Leave tools with an output schema as they are, and keep none of their results."),
)
SCOPE = flag("--user/--project-only", "In your home folder, or (the default) in this project alone.", SWITCH, to="user")
DRY_RUN = flag("--dry-run", "Show what would change, and change nothing.")
SHELLS = {
    "bash": 'eval "$(limpet completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(limpet completion zsh)"   # in ~/.zshrc',
    "fish": "limpet completion fish | source   # in ~/.config/fish/config.fish",
}

# One paragraph per command, laid out by hand: a formatter would need twice the lines.
# fmt: off
CONFIGURATION = (
    Command("init", "cd my-project && limpet init",
        "Make a store for the project you are in, hidden from git, and say how to connect an agent.",
        (optional("folder", FOLDER),), run=f"{SETUP}:init"),
    Command("install", "limpet install claude-code\nlimpet install codex --user --dry-run\nlimpet install generic",
        "Put Limpet into a coding agent's configuration: its MCP server and its hooks. Everything else in the files "
        "stays as it is, and `limpet uninstall` gives them back as they were. Without a client, it finds those that "
        "are on this machine and asks.",
        (optional("client"), SCOPE,
            flag("--shared", "In the files that a team shares, where the agent also has files of one machine."),
            DRY_RUN,
            flag("--guidance", "Also tell agents how to use it: AGENTS.md, CLAUDE.md or GEMINI.md."),
            flag("--skill", "Also put a skill (SKILL.md) where the agent looks for skills.")), run=f"{SETUP}:install"),
    Command("uninstall", "limpet uninstall claude-code",
        "Take Limpet out of a coding agent's configuration. A file nobody changed since is given back byte for byte; "
        "from any other only our own part is removed. Notes and everything else that was kept stay.",
        (argument("client"), SCOPE, DRY_RUN), run=f"{SETUP}:uninstall"),
    Command("status", "limpet status",
        "Show this project at a glance: its store, what is kept, trust and trouble; and which coding agents have it.",
        run=f"{SETUP}:status"),
    Command("trust", "limpet trust --show\nlimpet trust\nlimpet trust --store postgresql://db.example.org/limpet",
        "Show what the repository you are in wants to decide (.limpet/config.toml, .limpet/skills and .limpet/memory), "
        "and let it count. A change asks again. With --store or --project, let a client's configuration name it.",
        (flag("--show", "Show it and change nothing."), flag("--yes", "Do not ask.")),
        run="limpet.doors.cli.projects:trust"),
    Command("untrust", "limpet untrust", "Take trust in the repository, or with --store in a store, back.",
        run="limpet.doors.cli.projects:untrust"),
    Command("hook", "limpet hook --client claude-code session-start",
        "Answer one event of a coding agent: a JSON object on standard input, one on standard output. The agents call "
        "this themselves. It ends with 0 whatever happens; what goes wrong is in hooks.log in your data folder.",
        (option("--client", "NAME", "The coding agent. [default: the one that started it]"), argument("event")),
        run="limpet.doors.hooks.process:main", standalone=True),
    Command("off", "limpet off", "Switch the hooks of coding agents off in this project. Nothing is deleted.",
        run=f"{SETUP}:switch_off"),
    Command("on", "limpet on", "Switch the hooks of coding agents on again in this project.", run=f"{SETUP}:switch_on"),
    Command("completion", "\n".join(SHELLS.values()), "Print the script that lets a shell complete commands.",
        (argument("shell", CHOICE, choices=tuple(SHELLS)),), run="limpet.doors.cli.click_program:completion"),
)

SERVERS = (
    Command("mcp", "limpet mcp --profile full",
        "Speak MCP on standard input and output, for a client that starts it. One process is one session.",
        (PROFILE, STRUCTURED, flag("--no-handoff", "Leave the handoff to the client's hooks, which give it too."),
            LOG_JSON, TRACES), session=True, run=f"{ON_STDIO}:mcp"),
    Command("serve", "limpet serve --port 7438 --profile full\nlimpet serve --team --workers 4 --log-json",
        "Speak MCP over HTTP, on this machine unless you say otherwise, behind a token, and print how to connect.",
        (option("--host", "ADDRESS", "Where to listen. [default: 127.0.0.1]", default="127.0.0.1"),
            option("--port", "N", f"0: any. [default: {PORT}]", COUNT, default=PORT, bounds=(0, 65535)), PROFILE,
            STRUCTURED,
            option("--token", "TOKEN", "What clients must send. LIMPET_TOKEN keeps it out of `ps`."),
            flag("--no-token", "Let every program on this machine in."),
            flag("--team", "Let in who has a token of `limpet token create`, or your provider's."),
            option("--url", "ADDRESS", "Where clients reach it, behind a proxy: https://…", default=""),
            option("--workers", "N",
                "Processes that serve the port. With several, MCP has no transport sessions. [default: 1]",
                COUNT, default=1, bounds=(1, WORKERS_MAX)),
            flag("--metrics", "Numbers for Prometheus at /metrics, for admins."), LOG_JSON, TRACES), session=True,
        run="limpet.doors.cli.serve:serve"),
    Command("dashboard", "limpet dashboard",
        "Look at what is kept, in a browser: serve on this machine alone, open the page and sign in.",
        (option("--port", "N", "0: any. [default: 0]", COUNT, default=0, bounds=(0, 65535)),
            flag("--no-open", "Only print the address.")), run="limpet.doors.cli.serve:dashboard"),
    Command("tools", "limpet tools --profile core", "List the tools of a profile, or of all, and the tokens they cost.",
        (option("--profile", "NAME", "core, coding, full or agent. All of them when not given."),),
        run="limpet.doors.cli.own_logic:tools"),
)

PROXIES = (
    Command("wrap",
        "limpet wrap -- npx -y @modelcontextprotocol/server-filesystem .\n"
        "limpet wrap --url https://example.com/mcp --header-env Authorization=EXAMPLE_AUTH",
        "Stand in front of an MCP server, for a client on standard input and output: all passes as it is, except that "
        "big results are kept and a short preview with a reference comes in their place.",
        (option("--url", "ADDRESS", "The server's streamable HTTP address, instead of a command."),
            repeated("--header", "'NAME: VALUE'", "Send this with every request to --url."),
            repeated("--header-env", "NAME=VARIABLE",
                "The same with the value from an environment variable, so that no secret is seen in `ps`."),
            option("--name", "NAME", "What the server is called. [default: its command or address]"), *KEEPING,
            optional("server", REST, metavar="[-- COMMAND...]")), session=True, run=f"{ON_STDIO}:wrap"),
    Command("gateway", "limpet gateway --config servers.json",
        "Stand in front of many MCP servers at once, for a client on standard input and output. Their tools are named "
        "server__tool; one server that is dead or hangs touches only its own. Big results are kept, as with `wrap`. "
        "Each command gets its `env`, what its `pass_env` names and a few common variables, and nothing else; "
        "${NAME} in a value stands for an environment variable.",
        (option("--config", "FILE", "JSON or TOML with the servers, as clients have it (mcpServers).", required=True),
            option("--wait", "SECONDS",
                "How long a server may take to start or to list before the others are shown without it. [default: 8]",
                COUNT, bounds=(1, None)),
            *KEEPING), session=True, run=f"{ON_STDIO}:gateway"),
    Group("seals", "Tools of other MCP servers, sealed as they were first seen."),
    Command("seals list", "limpet seals list\nlimpet seals list files", params=(optional("server"),)),
    Command("seals approve", "limpet seals approve files\nlimpet seals approve files read_file",
        "Look at what the server says about its tools first: an agent believes it.",
        ("server", optional("tool"))),
)

PROJECTS = (
    Group("project", "The projects that have memory in your data folder.", default="project list"),
    Command("project list", "limpet project list", "List them, with their folders.", run=f"{PROJECT}:list_projects"),
    Command("project show", "limpet project show", "Show the project you are in, or the one with this id or name.",
        (optional("id"),), run=f"{PROJECT}:show"),
    Command("project where", "limpet project where", "Print the folder where this project's memory is.",
        run=f"{PROJECT}:where"),
    Command("project adopt", "limpet project adopt 3f2a9c1d",
        "Take over the memory of another project, for a folder that was moved or restored. It must not have a memory "
        "of its own yet.", (argument("id"),), run=f"{PROJECT}:adopt"),
    Command("project split", "limpet project split\nlimpet project split packages/app",
        "Make a folder or worktree a project of its own, in your settings file. What it shared so far stays where it "
        "is.", (optional("folder", FOLDER),), run=f"{PROJECT}:split"),
    Command("project forget", "limpet project forget 3f2a9c1d",
        "Delete everything that is kept of a project. It cannot be undone; `limpet export` first.",
        (argument("id"), flag("--yes", "Delete the memory of this project for good?", CONFIRM)),
        run=f"{PROJECT}:forget"),
)

COMMANDS = (*CONFIGURATION, *PROJECTS, *SERVERS, *PROXIES)
