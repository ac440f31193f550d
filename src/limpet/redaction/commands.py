"""Secrets on command lines: the options and places where commands take a password."""

from __future__ import annotations

from collections.abc import Iterator

from limpet.redaction.values import Span, late, placeholder, places, strong

LINE = 2_000  # characters of a command line that are looked at
_QUOTED = r"\"[^\"\n]{1,128}\"|'[^'\n]{1,128}'"
_VALUE = rf"({_QUOTED}|[^\s\"'\\|&;<>-][^\s\"'\\|&;<>]{{0,127}})"
_SHORT_P = late(rf"\s-p[ =]?{_VALUE}")
_SHORT_W = late(rf"\s-w[ =]?{_VALUE}")
_CAPITAL_P = late(rf"\s-P[ =]?{_VALUE}")

# A command in lower case, its options as bytes, the pattern of its password, and whether anything is one: after an
# option that takes nothing else, a word is a password too; elsewhere it has to look like one.
COMMANDS = (
    ("curl ", (b"-u", b"-U", b"--user", b"--proxy-user"),
     late(r"\s(?:-u|-U|--user|--proxy-user)[ =]?[\"']?[^\s:\"']{0,64}:([^\s\"'\\]{1,128})"), True),
    ("mysql", (b"-p",), late(rf"\s-p([^\s\"'\\-][^\s\"'\\]{{0,127}}|{_QUOTED})"), True),
    ("mariadb", (b"-p",), late(rf"\s-p([^\s\"'\\-][^\s\"'\\]{{0,127}}|{_QUOTED})"), True),
    ("sshpass ", (b"-p",), late(rf"-p ?({_QUOTED}|[^\s\"'\\]{{1,128}})"), True),
    (" login ", (b"-p",), _SHORT_P, True),  # docker, podman, helm registry, az, oc
    ("redis-cli", (b"-a", b"--pass"), late(rf"\s(?:-a|--pass)[ =]{_VALUE}"), True),
    ("htpasswd", (b"b",), late(
        r"\s-(?=[a-zA-Z]{0,6}b)(?:(?=[a-zA-Z]{0,6}n)[a-zA-Z]+|[a-zA-Z]+\s+\S{1,200})"
        rf"\s{{1,4}}\S{{1,100}}\s{{1,4}}{_VALUE}"), True),
    ("mongo", (b"-p",), _SHORT_P, True),
    ("ldap", (b"-w",), _SHORT_W, False),
    ("zip ", (b"-P",), _CAPITAL_P, False),
    *((name, (b"-p",), late(rf"\s-p{_VALUE}"), False) for name in ("7z a ", "7z x ", "7z e ", "7za ")),
    ("rar ", (b"-p", b"-hp"), late(rf"\s-h?p{_VALUE}"), False),
    ("openssl ", (b"pass:", b"-k ", b"-K "), late(
        r"(?:\bpass:|\bopenssl (?:enc|aes|des|aria|camellia|chacha|bf|cast|rc|sm4)[^\n|;&]{0,300}?\s-[kK] )"
        rf"({_QUOTED}|[^\s\"'\\]{{3,128}})"), True),
    ("ssh-keygen", (b"-N", b"-P"), late(rf"\s-[NP][ =]?{_VALUE}"), True),
    ("sqlcmd", (b"-P",), _CAPITAL_P, True),
    ("ipmitool", (b"-P",), _CAPITAL_P, True),
    ("smbclient", (b"%",), late(r"\s(?:-U|--user)[ =]?[\"']?[^\s%\"']{1,64}%([^\s\"'\\]{1,128})"), True),
    ("net use", (b"/user:", b"/USER:"), late(r"/(?:user|USER):\S{1,64}\s+([^\s/*][^\s]{0,127})"), False),
    ("xfreerdp", (b"/p:",), late(r"\s/p:([^\s\"'\\]{1,128})"), True),
    ("plink", (b"-pw",), late(rf"\s-pw {_VALUE}"), True),
    ("lftp", (b"-u",), late(r"\s-u ?[\"']?[^\s,\"']{1,64},([^\s\"'\\]{1,128})"), True),
    ("rclone obscure", (b" ",), late(rf"obscure\s{{1,4}}{_VALUE}"), True),
    ("keytool", (b"pass",), late(rf"\s-(?:src|dest|new)?(?:store|key)?pass(?:wd)?\s{{1,4}}{_VALUE}"), True),
    ("jarsigner", (b"pass",), late(rf"\s-(?:store|key)pass\s{{1,4}}{_VALUE}"), True),
    ("wpa_passphrase", (b" ",), late(rf"wpa_passphrase\s+\S{{1,64}}\s+{_VALUE}"), True),
    ("nmcli", (b"password", b"psk"), late(rf"\s(?:password|[a-z-]{{0,32}}\.psk)\s{{1,4}}{_VALUE}"), True),
)  # fmt: skip
# A password handed to a command through a pipe, and one after an option with a single dash.
_PIPED = late(
    rf"echo\s{{1,4}}(?:-n\s{{1,4}})?(?:[\w.-]{{1,64}}:)?{_VALUE}\s{{0,4}}\|\s{{0,4}}"
    r"(?:sudo\s{1,4}-S|chpasswd|passwd|sudo chpasswd|kinit|cryptsetup"
    r"|(?:docker|podman|helm|oras|nerdctl)\s[^\n|]{0,200}--password-stdin)"
)
_OPTION = late(rf"-(?:pass(?:word|wd|phrase)?|token|secret|api-?key)[ =]{_VALUE}")
_DASHED = ("-pass", "-token", "-secret", "-apikey", "-api-key")


def commands(text: str, lower: str) -> Iterator[Span]:
    """Every secret on a command line; `lower` is the text in lower case, of equal length."""
    for command, _, pattern, anything in COMMANDS:
        position = lower.find(command)
        while position >= 0:
            line = lower.find("\n", position, position + LINE)
            end = line if line >= 0 else min(len(text), position + LINE)
            for match in pattern.finditer(text, max(0, position - 1), end):
                if _secret(match.group(1), anything) and not _numbers(match.group()):
                    yield Span(*match.span(1), "password")
            position = lower.find(command, end)
    for match in _PIPED.finditer(text) if "echo" in lower and "|" in text else ():
        if _secret(match.group(1), anything=True):
            yield Span(*match.span(1), "password")
    for position in (position for word in _DASHED for position in places(lower, word)):
        option = None if position and not text[position - 1].isspace() else _OPTION.match(text, position)
        if option and _secret(option.group(1), anything=False):
            yield Span(*option.span(1), "password")


def _secret(value: str, anything: bool) -> bool:
    value = value.strip("\"'")
    if placeholder(value) or value.startswith(("/", "./", "~")) or (value.isdigit() and len(value) < 6):
        return False  # a path, a port
    return anything or strong(value)


def _numbers(option: str) -> bool:
    """Whether it is a user and a group by number, as in `-u 1000:1000`."""
    user, colon, group = option.rpartition(" ")[2].strip("\"'").partition(":")
    return bool(colon) and user.isdigit() and group.isdigit()
