"""Secrets are masked wherever they stand, ordinary text is left alone, and no text makes it slow.

Every secret here is made at run time from a seed, so that no line of this file looks like one.
"""

from __future__ import annotations

import base64
import json
import random
import string
import sysconfig
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.redaction import Redacted, redact
from limpet.redaction.values import Span, settle

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
WORD = ALNUM + "_-"
UPPER = string.ascii_uppercase + "234567"
BASE64 = ALNUM + "+/"
LOW = string.ascii_lowercase + string.digits

# Kind, prefix, alphabet, length; "." in the prefix column's place is written as it is.
SIMPLE: list[tuple[str, str, str, int]] = [
    ("aws-access-key", "AKIA", UPPER, 16),
    ("aws-access-key", "ASIA", UPPER, 16),
    *[("github-token", f"gh{letter}_", ALNUM, 36) for letter in "pousr"],
    ("github-pat", "github_" + "pat_", ALNUM + "_", 82),
    ("gitlab-token", "glpat-", WORD, 20),
    ("slack-token", "xoxb-", string.digits + "-", 24),
    ("stripe-key", "sk_" + "live_", ALNUM, 24),
    ("stripe-key", "rk_" + "live_", ALNUM, 24),
    ("anthropic-key", "sk-" + "ant-api03-", WORD, 93),
    ("openai-key", "sk-" + "proj-", WORD, 74),
    ("openai-key", "sk-", ALNUM, 48),
    ("openrouter-key", "sk-or-v1-", HEX, 64),
    ("google-api-key", "AIza", WORD, 35),
    ("google-oauth-token", "ya29.", WORD, 60),
    ("google-client-secret", "GOCSPX-", WORD, 28),
    ("npm-token", "npm_", ALNUM, 36),
    ("pypi-token", "pypi-" + "AgEIcHlwaS5vcmc", WORD, 120),
    ("docker-token", "dckr_pat_", WORD, 27),
    ("age-key", "AGE-SECRET-" + "KEY-1", UPPER, 58),
    ("twilio-key", "SK", HEX, 32),
    ("heroku-key", "HRKU-AA", WORD, 58),
    ("digitalocean-token", "dop_v1_", HEX, 64),
    ("huggingface-token", "hf_", string.ascii_letters, 34),
    ("databricks-token", "dapi", HEX, 32),
    ("mailgun-key", "key-", HEX, 32),
    ("newrelic-key", "NRAK-", UPPER, 27),
    ("grafana-token", "glsa_", ALNUM, 40),
    ("linear-key", "lin_api_", ALNUM, 40),
    ("notion-token", "ntn_", ALNUM, 46),
    ("figma-token", "figd_", WORD, 40),
    ("doppler-token", "dp.pt.", ALNUM, 43),
    ("vault-token", "hvs.", WORD, 90),
    ("pulumi-token", "pul-", HEX, 40),
    ("shopify-token", "shpat_", HEX, 32),
    ("square-token", "sq0atp-", WORD, 22),
    ("atlassian-token", "ATATT3", WORD, 180),
    ("rubygems-key", "rubygems_", HEX, 48),
    ("nuget-key", "oy2", LOW, 43),
    ("planetscale-token", "pscale_tkn_", WORD, 40),
    ("supabase-key", "sbp_", HEX, 40),
    ("netlify-token", "nfp_", ALNUM, 36),
    ("replicate-token", "r8_", ALNUM, 37),
    ("groq-key", "gsk_", ALNUM, 52),
    ("xai-key", "xai-", ALNUM, 80),
    ("perplexity-key", "pplx-", ALNUM, 48),
    ("nvidia-key", "nvapi-", WORD, 64),
    ("tailscale-key", "tskey-auth-", ALNUM, 30),
    ("circleci-token", "CCIPAT_", ALNUM, 60),
    ("alibaba-key", "LTAI", ALNUM, 20),
    ("webhook-secret", "whsec_", ALNUM, 32),
]


def some(source: random.Random, alphabet: str, length: int) -> str:
    return "".join(source.choice(alphabet) for _ in range(length))


def pem(source: random.Random, kind: str = "RSA ") -> str:
    lines = [some(source, BASE64, 64) for _ in range(source.randrange(3, 25))]
    edge = "-" * 5
    return "\n".join([f"{edge}BEGIN {kind}PRIVATE KEY{edge}", *lines, f"{edge}END {kind}PRIVATE KEY{edge}"])


def jwt(source: random.Random) -> str:
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()).decode().rstrip("=")
    body = json.dumps({"sub": some(source, ALNUM, 20), "iat": source.randrange(10**9)}).encode()
    return f"{head}.{base64.urlsafe_b64encode(body).decode().rstrip('=')}.{some(source, WORD, 43)}"


SHAPED: dict[str, Callable[[random.Random], str]] = {
    "jwt": jwt,
    "private-key": pem,
    "sendgrid-key": lambda r: f"SG.{some(r, WORD, 22)}.{some(r, WORD, 43)}",
    "telegram-token": lambda r: f"{r.randrange(10**8, 10**10)}:AA{some(r, WORD, 33)}",
    "azure-client-secret": lambda r: f"{some(r, ALNUM, 3)}8Q~{some(r, WORD, 34)}",
    "mailchimp-key": lambda r: f"{some(r, HEX, 32)}-us{r.randrange(1, 22)}",
    "airtable-token": lambda r: f"pat{some(r, ALNUM, 14)}.{some(r, HEX, 64)}",
    "terraform-token": lambda r: f"{some(r, ALNUM, 14)}.atlasv1.{some(r, WORD, 67)}",
    "discord-token": lambda r: f"M{some(r, ALNUM, 25)}.{some(r, WORD, 6)}.{some(r, WORD, 38)}",
    "postman-key": lambda r: f"PMAK-{some(r, HEX, 24)}-{some(r, HEX, 34)}",
    "dynatrace-token": lambda r: f"dt0c01.{some(r, UPPER, 24)}.{some(r, UPPER, 64)}",
}
# What a token may stand in; the secret itself has a look of its own.
PLACES = [
    "{}",
    "export SOMETHING={}\n",
    "see {} for it",
    '{{"value": "{}", "n": 1}}',
    '{{\\"value\\": \\"{}\\"}}',
    "line\\n{}\\nline",
    "https://example.com/?a=1&b={}&c=2",
    "https%3A%2F%2Fexample.com%2F%3Fb%3D{}%26c%3D2",
    "Authorization: Bearer {}\r\n",
    "[{}]({})",
    "x = '{}'  # comment",
    "2024-01-01T00:00:00Z ERROR request failed key={} status=500",
]
# What says by its surroundings or its name that a value is secret.
NAMED: list[tuple[str, str, int]] = [
    ("postgres://app:{}@db.example.com:5432/app", ALNUM, 12),
    ("redis://:{}@cache:6379/0", ALNUM + "!$", 10),
    ('"url": "https:\\/\\/bot:{}@example.com\\/x"', ALNUM, 9),
    ("Authorization: Basic {}", ALNUM, 24),
    ('curl -H "Authorization: token {}" https://x', HEX, 40),
    ("DB_PASSWORD={}\nDEBUG=1", ALNUM + "!#%", 12),
    ("export API_KEY='{}'", ALNUM, 32),
    ('{{"client_secret": "{}"}}', ALNUM, 30),
    ('{{\\"access_token\\": \\"{}\\"}}', ALNUM, 40),
    ("aws_secret_access_key = {}", BASE64, 40),
    ('"SecretAccessKey": "{}"', BASE64, 40),
    ("AccountName=a;AccountKey={}==;EndpointSuffix=core.windows.net", BASE64, 86),
    ("//registry.example.com/:_authToken={}", ALNUM, 36),
    ("users:\n- name: me\n  user:\n    token: {}\n", ALNUM, 40),
    ("    client-key-data: {}\n", ALNUM, 400),
    ("password: {}\n", ALNUM, 14),
    ("<password>{}</password>", ALNUM, 12),
    ("mysqldump --password={} shop", ALNUM, 12),
    ("deploy --token {} now", ALNUM, 32),
    ("curl -u admin:{} https://example.com", ALNUM, 12),
    ("machine example.com login me password {}", ALNUM, 12),
    ("X-Api-Key: {}", ALNUM, 32),
    ("HEROKU_API_KEY={}", HEX, 32),
    ('const apiKey: string = "{}";', ALNUM, 32),
    ("https://e.blob.core.windows.net/c?sv=2022&sig={}%3D&se=1", ALNUM, 43),
    ("https://hooks.slack.com/services/{}", ALNUM, 40),
]


def planted(number: int) -> list[tuple[str, str, str]]:
    """(kind, secret, text with the secret) in turn over all kinds and places."""
    source = random.Random(20240607)
    made = []
    for index in range(number):
        which = index % (len(SIMPLE) + len(SHAPED) + len(NAMED))
        if which < len(SIMPLE):
            kind, prefix, alphabet, length = SIMPLE[which]
            secret, place = prefix + some(source, alphabet, length), source.choice(PLACES)
        elif which < len(SIMPLE) + len(SHAPED):
            kind = list(SHAPED)[which - len(SIMPLE)]
            secret, place = SHAPED[kind](source), source.choice(PLACES)
        else:
            place, alphabet, length = NAMED[which - len(SIMPLE) - len(SHAPED)]
            kind, secret = place, some(source, alphabet, length)
        made.append((kind, secret, place.replace("{{", "{").replace("}}", "}").replace("{}", secret)))
    return made


def test_recall_over_a_thousand_planted_secrets() -> None:
    cases = planted(1000)
    missed = [(kind, text) for kind, secret, text in cases if secret in redact(text).text]
    assert len({kind for kind, _, _ in cases}) >= 60
    assert len(missed) <= 20, missed


def test_all_of_them_are_found_in_one_text_between_ordinary_lines() -> None:
    cases = planted(1000)
    ordinary = lock_file(3).splitlines()
    text = "\n".join(f"{ordinary[index % len(ordinary)]}\n{case[2]}" for index, case in enumerate(cases))
    result = redact(text)
    missed = [(kind, secret) for kind, secret, _ in cases if secret in result.text]
    assert len(missed) <= 20, missed
    assert result.count >= 980
    assert len(result.kinds) >= 40


@pytest.mark.parametrize(("kind", "prefix", "alphabet", "length"), SIMPLE)
def test_every_kind_at_the_start_at_the_end_and_several_in_a_line(
    kind: str, prefix: str, alphabet: str, length: int
) -> None:
    source = random.Random(f"{kind}{prefix}")
    one, two = (prefix + some(source, alphabet, length - 2) + "A2" for _ in range(2))
    if alphabet in (HEX, LOW):
        one, two = (secret[:-2] + "a2" for secret in (one, two))
    result = redact(f"{one} and {two},{one}")
    assert result.count == 3
    assert result.kinds == (kind,)
    first, second = result.text.split(" and ")
    assert second == f"{second.split(',')[0]},{first}"  # the same secret is the same placeholder
    assert second.split(",")[0] != first
    assert redact(f"elsewhere: {one}\n").text == f"elsewhere: {first}\n"


def test_the_placeholder_of_a_password_tells_nothing_about_it() -> None:
    one = redact("postgres://app:" + "hunter2" + "@db/app and DB_PASSWORD=" + "hunter2")
    two = redact("postgres://app:" + "letmein9" + "@db/app and DB_PASSWORD=" + "letmein9")
    assert one == two
    text = "postgres://app:[redacted:password]@db/app and DB_PASSWORD=[redacted:password]"
    assert one == Redacted(text, 2, ("password",))


@pytest.mark.parametrize("password", ["p", "p@ss", "päss", "a,b;c", "x%40y"])
def test_only_the_password_of_an_address_goes(password: str) -> None:
    assert (
        redact(f"at postgres://u:{password}@h:5432/db?x=1").text == "at postgres://u:[redacted:password]@h:5432/db?x=1"
    )


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_key_block_goes_as_a_whole_in_every_writing(kind: str) -> None:
    block = pem(random.Random(kind), kind)
    plain = redact(f"before\n{block}\nafter")
    placeholder = plain.text.split("\n")[1]
    assert plain.text == f"before\n{placeholder}\nafter"
    assert placeholder.startswith("[redacted:private-key:")
    escaped = redact(json.dumps({"key": block, "x": 1}))
    assert json.loads(escaped.text) == {"key": placeholder, "x": 1}
    twice = redact(json.dumps(json.dumps({"key": block})))
    assert json.loads(json.loads(twice.text)) == {"key": placeholder}
    assert "[redacted:private-key" in redact(quote(block)).text
    encoded = base64.b64encode(block.encode()).decode()
    assert encoded[60:100] not in redact(f"data: {encoded}").text


def test_a_key_block_that_is_cut_in_two_leaves_nothing_on_either_side() -> None:
    lines = pem(random.Random(5)).split("\n")
    head, tail = redact("\n".join(["x", *lines[:4]])), redact("\n".join([*lines[2:], "y"]))
    assert head.count == tail.count == 1
    assert not any(line in head.text or line in tail.text for line in lines[1:-1])
    assert head.text.startswith("x\n")
    assert tail.text.endswith("\ny")


def test_a_certificate_is_no_secret() -> None:
    text = pem(random.Random(1)).replace("RSA PRIVATE KEY", "CERTIFICATE")
    encoded = base64.b64encode(text.encode()).decode()
    assert redact(f"{text}\n{encoded}").count == 0


@pytest.mark.parametrize("at", [0, 3, 10, 19])
def test_letters_written_as_escapes_hide_nothing(at: int) -> None:
    secret = "AKIA" + some(random.Random(7), UPPER, 14) + "A2"
    other = f'{{"a": "{secret[:at]}\\u{ord(secret[at]):04x}{secret[at + 1 :]}", "b": "\\u003cok\\u003e"}}'
    result = redact(other)
    expected = redact(secret).text
    assert result.text == f'{{"a": "{expected}", "b": "\\u003cok\\u003e"}}'
    coded = redact(f"x=%20{secret[:at]}%{ord(secret[at]):02X}{secret[at + 1 :]}%26y")
    assert expected in coded.text
    assert secret[at + 1 :] not in coded.text or at == len(secret) - 1


def test_an_address_written_with_escapes() -> None:
    coded = quote("postgres://app:" + "hunter2" + "@db/app", safe="")
    assert redact(f"url={coded}&x=1").text == "url=" + coded.replace("hunter2", "[redacted:password]") + "&x=1"


def test_the_tail_of_a_long_value_goes_too() -> None:
    long = some(random.Random(3), ALNUM, 3000)
    assert redact(f"SESSION_TOKEN={long} x").text == "SESSION_TOKEN=[redacted:secret] x"


def test_letters_alone_are_a_secret_when_chance_mixed_them() -> None:
    letters = "aBcDEf" * 5
    assert redact(f'token = "{letters}"').count == redact(f"token: {letters},").count == 1
    assert redact('token = "SomeClassNameOfManyWords", secret: another-name-of-things').count == 0


def test_findings_that_overlap_are_masked_as_one() -> None:
    spans = [Span(5, 9, "b", "x"), Span(0, 6, "a"), Span(0, 6, "c", "y"), Span(1, 2, "d"), Span(9, 10, "e")]
    assert settle(spans) == [Span(0, 9, "c", "y"), Span(9, 10, "e")]


def test_credentials_in_base64() -> None:
    code = base64.b64encode(b"me:" + b"hunter2").decode()
    assert redact(f'{{"auths": {{"host": {{"auth": "{code}"}}}}}}').count == 1
    assert redact(f"sends Basic {code} with it").text == "sends Basic [redacted:password] with it"
    assert redact("Basic information about authentication, auth=" + "abcdefgh" * 2).count == 0


def test_a_putty_key() -> None:
    lines = "\n".join(some(random.Random(9), BASE64, 64) for _ in range(3))
    assert redact(f"Public-Lines: 1\nAAAA\nPrivate-Lines: 3\n{lines}\n").kinds == ("private-key",)


def test_the_secret_key_beside_an_access_key() -> None:
    source = random.Random(11)
    key = "AKIA" + some(source, UPPER, 16)
    secret = some(source, BASE64, 39) + "7"
    result = redact(f"Access key ID,Secret access key\n{key},{secret}\n")
    assert result.kinds == ("aws-access-key", "aws-secret-key")
    assert result.text.split("\n")[1].count("[redacted:") == 2


@pytest.mark.parametrize(
    "text",
    [
        "password=None",
        "password = None, token=token",
        "PASSWORD=",
        "TOKEN=<token>",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "API_KEY=${API_KEY}",
        "API_KEY=$API_KEY",
        "SECRET=***",
        "SECRET_TOKEN=xxxxxxxxxxxx",
        'password = os.environ["DB_PASSWORD"]',
        "password = getpass.getpass()",
        "def login(user: str, password: str) -> None:",
        "self.token = tokenize(text)",
        '"token": "access_token"',
        '"max_tokens": 4096, "token_count": 12345678',
        '"nextPageToken": "CAESBgoEGAEgAA12"',
        "password: string;",
        'label.password = "Enter your password"',
        "Failed password for root from 10.0.0.1 port 22",
        "postgres://user:${PASSWORD}@host/db",
        "postgres://user:<password>@host/db",
        "f'postgres://{user}:{password}@{host}/db'",
        "http://localhost:8080/@scope/package",
        "git+ssh://git@github.com/a/b.git",
        "Authorization: Bearer <token>",
        'headers = {"Authorization": "Bearer " + token}',
        "Authorization: Bearer $TOKEN",
        "docker run -u 1000:1000 image",
        "hf_" + "abcdefghijklmnopqrstuvwxyzabcdefgh",
        "port 12:AA" + "abcDEF0123" * 3 + "abc",
        '"authorization": "token 0000000000000000000000000000000000000001"',
        "token = r'[-!#$%&0-9a-zA-Z]+'",
        "PASSWORD=input(text)",
        "call(token=*buffer12345678, n)",
        "token: 12345678, secret=(a or b), password: )",
        "api_key=client.options.Key1, token: a-b-c-d-e-f-g",
        "primary_key=id12345678, public_key: abcdef1234567890abcdef",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "sk-estimator-doc-link sk-toggleable__label-arrow",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert redact(text) == Redacted(text, 0, ())


def lock_file(seed: int, entries: int = 400) -> str:
    """As package managers write them: integrity hashes, addresses, git hashes; and pictures in base64."""
    source = random.Random(seed)
    lines = []
    for index in range(entries):
        name = some(source, string.ascii_lowercase, 9)
        digest = base64.b64encode(source.randbytes(64)).decode()
        lines += [
            f'    "node_modules/{name}": {{',
            f'      "resolved": "https://registry.example.com/{name}/-/{name}-1.{index}.0.tgz",',
            f'      "integrity": "sha512-{digest}",',
            f'      "gitHead": "{source.randbytes(20).hex()}", "id": "{source.randbytes(16).hex()}"',
            f'    {{file = "{name}.whl", hash = "sha256:{source.randbytes(32).hex()}"}},',
            f"{name}@^1.0.0: checksum: 10c0/{source.randbytes(64).hex()}",
        ]
    lines.append("data:image/png;base64," + base64.b64encode(source.randbytes(60_000)).decode())
    return "\n".join(lines)


def test_ordinary_code_and_lock_files_are_left_alone() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    texts = [path.read_text("utf-8", "replace") for path in sorted(library.glob("*.py"))]
    texts += [lock_file(seed) for seed in range(6)]
    size = sum(len(text) for text in texts)
    assert size > 2_000_000
    assert sum(redact(text).count for text in texts) <= size / 100_000
    assert sum(redact(lock_file(seed)).count for seed in range(6)) == 0


@pytest.mark.parametrize(
    "unit",
    [
        *sorted({prefix for _, prefix, _, _ in SIMPLE}),
        *[
            "eyJ",
            "-eyJ",
            "eyJaaaaaaaaa.",
            "eyJaaaaaaaaa.eyJ",
            "\\neyJ",
            "SG.",
            "SG.aaaaaaaaaaaaaaaaaaaaaa",
            ":AA",
            "1:AA",
        ],
        *["-----BEGIN", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAA\n", "-----", "-"],
        *["-----END PRIVATE KEY-----", "AAAA\n-----END PRIVATE KEY-----\n", "LS0tLS1CRUdJTi", "PRIVATE "],
        *["://", "a://a:", "a://:@", "://a:b", "@", "a:b@", "token=", "token=a", 'token="', "token='a\"", 'token=\\"'],
        *[
            "password",
            "password=",
            "PASSWORD=",
            "--password ",
            "key_",
            "API_KEY=a",
            "secret: ",
            "<password>",
            "token:str=",
        ],
        *[
            "password is ",
            "the password for a b c d e ",
            "with password ",
            "token is x ",
            "mot de passe de a b c ",
            "密码",
        ],
        *["cookie: a=b; ", "PHPSESSID=", "a:1234:b:c:d\n", "login as a / ", "seed phrase: abc def ", "-token x1 "],
        *["docker login -p ", "htpasswd -b a ", "echo x | sudo ", "openssl pass:", "redis-cli -a "],
        *["authorization: ", "authorization:basic ", "bearer ", "bearer a1", "basic ", "auth=", "curl -u ", "mysql -p"],
        *[
            "sshpass -p",
            "login a password ",
            "\\u0041",
            "\\u0041 ",
            "%41",
            "%41 ",
            "%3D",
            "[redacted:",
            "[redacted:password]",
        ],
        *[
            "sig=",
            "hooks.slack.com/services/",
            "M",
            "Ma.",
            "aaaaaaaaaaaaaaaaaaaaaaaa.aaaaaa.",
            "a",
            "_",
            "Q~",
            "pat",
            "-us",
        ],
        *[
            "AKIA" + "A" * 16 + " ",
            "Private-Lines: 1\nAAAA\n",
            "client-key-data: ",
            "eyJ" + "a" * 30 + "." + "b" * 30 + ".",
        ],
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """Anything worse than linear would run into the test's time limit."""
    text = unit * (100_000 // len(unit))
    assert redact(text + "\n" + "a" * 1000).count >= 0


pieces = st.sampled_from(
    [case[2] for case in planted(300)] + [case[1] for case in planted(300)] + [prefix for _, prefix, _, _ in SIMPLE]
)
glue = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "=",
        ":",
        '"',
        "'",
        "\\n",
        "%3D",
        "\\u0041",
        "]",
        "[redacted:",
        "token=",
        "://a:",
        "\x1b[0m",
        "\\u001b[1m",
        "\u200b",
    ]
)
mixtures = st.lists(pieces | glue | st.text(max_size=8), max_size=12).map("".join)


@given(mixtures)
def test_masking_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    again = redact(once.text)
    assert again == Redacted(once.text, 0, ())


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_taken(text: str) -> None:
    assert redact(text).count >= 0
