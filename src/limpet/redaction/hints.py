"""Whether a text can contain a secret at all: a few substring searches, for the many short texts that cannot.

Generous on purpose. tests/unit/test_redaction_figures.py holds it to every kind of secret the finders know.
"""

SHORT = 4_000  # characters; a longer text is worth the fast pass over all of it
_LONG = 20  # characters that a secret of a known format has at least, without a space in it
# What the finders that go by name or context need to see, in lower case.
_WORDS = (
    *("pass", "pw", "secret", "token", "key", "credential", "auth", "bearer", "basic", "cookie", "sess", "sid"),
    *("://", ":\\/\\/", "\\u00", "private-lines", "login", "curl", "mysql", "redis-cli", "mongo", "ldap", "zip", "7z"),
    *(
        "log in",
        "sign in",
        "account",
        "creds",
        "seed",
        "phrase",
        "mnemonic",
        "sudo",
        "smbclient",
        "sqlcmd",
        "net use",
        "openssl",
        "rclone",
        "rar",
        "chpasswd",
        "identifiants",
    ),
    *("wort", "wachtwoord", "contrase", "senha", "palavra-", "parol", "пароль", "hasł", "haslo", "lösenord", "heslo"),
    *("adgangskode", "salasana", "jelszó", "zugangs", "credenciales", "nmcli", "ipmitool", "freerdp", "plink", "lftp"),
    *("şifre", "密码", "密碼", "口令", "暗号", "パスワード", "비밀번호", "암호"),
)
_PGPASS_COLONS = 4
# Characters that are not shown: shifts of a terminal, the soft hyphen, spaces and joiners without width, and marks of
# the direction of writing. And how such characters, or the one that begins a colour, are written as escapes.
UNSEEN = (
    "\x0e\x0f\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
)
_UNSEEN_ASCII = ("\x1b", "\x0e", "\x0f", "^[[", "^[]")
_UNSEEN_OTHER = (*UNSEEN[2:], "\x9b")
_UNSEEN_ESCAPED = (
    *("\\x1b", "\\x1B", "\\u001", "\\U00", "\\u{1", "\\033", "\\e[", "\\e]", "\\E[", "\\E]"),
    *("\\u20", "\\u00a", "\\u00A", "\\ufe", "\\uFE", "\\u061"),
)


def has_unseen(text: str) -> bool:
    """Whether a part of the text may not be shown, so that a secret looks different to a reader and to a pattern."""
    return (
        any(sign in text for sign in _UNSEEN_ASCII)
        or ("\\" in text and any(sign in text for sign in _UNSEEN_ESCAPED))
        or (not text.isascii() and any(sign in text for sign in _UNSEEN_OTHER))
    )


def may_hold(text: str) -> bool:
    if len(text) > SHORT or has_unseen(text):
        return True
    lower = text.lower()
    for word in _WORDS:
        if word in lower:
            return True
    if _colons(text) >= _PGPASS_COLONS and any(_colons(line) >= _PGPASS_COLONS for line in text.split("\n")):
        return True
    # A row of small letters is a name or a path; a secret by chance has a digit or a capital letter in it.
    return any(len(word) >= _LONG and not _plain(word) for word in text.split())


def _colons(text: str) -> int:
    """Without those of JSON and prose, which a space follows."""
    return text.count(":") - text.count(": ")


def _plain(word: str) -> bool:
    path, _, line = word.rpartition(":")
    name = path if line.isdigit() else word  # a path is often followed by a line's number
    return name.islower() and not any(sign.isdigit() for sign in name)
