"""Secrets that are masked, of many kinds in their usual surroundings, and ordinary lines that are masked by mistake.

Values are random in every run; a sample counts as masked when nothing of its value is left. Lines come from the Python
packages of this environment and the standard library. An address with a password in it, as in the examples of a
documentation, is no mistake.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from bench.figures import alone
from bench.measure import Sizes, span, table, verdict
from limpet.redaction import redact, search

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
WORD = ALNUM + "_-"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
BASE64 = ALNUM + "+/"
GOAL, MISTAKES = 0.98, 1.0  # share of samples; lines of 100,000


class Sample(NamedTuple):
    kind: str
    text: str
    secret: str


def some(source: random.Random, alphabet: str, length: int) -> str:
    """A random value with a letter and a digit in it where the alphabet has both."""
    while True:
        value = "".join(source.choices(alphabet, k=length))
        letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
        if (
            len(set(value)) > min(4, length // 2)
            and (letters or alphabet == string.digits)
            and (digits or not any(map(str.isdigit, alphabet)))
        ):
            return value


def password(source: random.Random) -> str:
    """As people choose them: words and digits, sometimes a special character."""
    first, second = (source.choice(["hunter", "Sommer", "dragon", "Tiger", "monkey", "blau", "Paris"]) for _ in "ab")
    return f"{first}{source.choice('!#_-.$')}{second}{source.randrange(10, 9999)}"


# Kind, what the value begins with, its alphabet and length. Prefixes are joined here, so that no line looks like one.
PREFIXED: dict[str, tuple[str, str, int]] = {
    "aws access key": ("AK" + "IA", UPPER, 16),
    "aws temporary key": ("AS" + "IA", UPPER, 16),
    "github token": ("gh" + "p_", ALNUM, 36),
    "github app token": ("gh" + "s_", ALNUM, 36),
    "github fine-grained": ("github" + "_pat_", ALNUM + "_", 82),
    "gitlab token": ("gl" + "pat-", WORD, 20),
    "gitlab runner token": ("gl" + "rt-", WORD, 20),
    "slack bot token": ("xo" + "xb-", LOWER, 40),
    "slack user token": ("xo" + "xp-", LOWER, 60),
    "stripe secret key": ("sk" + "_live_", ALNUM, 24),
    "stripe restricted key": ("rk" + "_live_", ALNUM, 24),
    "stripe webhook secret": ("wh" + "sec_", BASE64, 32),
    "anthropic key": ("sk-" + "ant-api03-", WORD, 93),
    "openai project key": ("sk-" + "proj-", WORD, 74),
    "openai key": ("sk-", ALNUM, 48),
    "openrouter key": ("sk-" + "or-v1-", HEX, 64),
    "google api key": ("AI" + "za", WORD, 35),
    "google access token": ("ya" + "29.", WORD, 120),
    "google client secret": ("GOC" + "SPX-", WORD, 28),
    "npm token": ("npm" + "_", ALNUM, 36),
    "pypi token": ("pypi-" + "AgEIcHlwaS5vcmc", WORD, 120),
    "docker token": ("dckr" + "_pat_", WORD, 27),
    "age key": ("AGE-SECRET-" + "KEY-1", string.ascii_uppercase + "234567", 58),
    "twilio key": ("S" + "K", HEX, 32),
    "digitalocean token": ("dop" + "_v1_", HEX, 64),
    "huggingface token": ("h" + "f_", string.ascii_letters, 34),
    "databricks token": ("da" + "pi", HEX, 32),
    "mailgun key": ("key" + "-", HEX, 32),
    "brevo key": ("xkey" + "sib-", HEX, 64),
    "newrelic key": ("NR" + "AK-", UPPER, 27),
    "grafana token": ("gl" + "sa_", ALNUM, 41),
    "sentry token": ("snt" + "rys_", BASE64, 80),
    "linear key": ("lin" + "_api_", ALNUM, 40),
    "notion token": ("nt" + "n_", ALNUM, 46),
    "figma token": ("fig" + "d_", WORD, 40),
    "doppler token": ("dp." + "pt.", ALNUM, 43),
    "vault token": ("hv" + "s.", WORD, 90),
    "pulumi token": ("pu" + "l-", HEX, 40),
    "shopify token": ("shp" + "at_", HEX, 32),
    "square token": ("sq0" + "atp-", WORD, 22),
    "facebook token": ("EAA" + "G", ALNUM, 120),
    "dropbox token": ("s" + "l.", WORD, 140),
    "atlassian token": ("ATA" + "TT3", WORD, 180),
    "rubygems key": ("ruby" + "gems_", HEX, 48),
    "crates token": ("ci" + "o", ALNUM, 32),
    "clojars token": ("CLO" + "JARS_", HEX, 60),
    "planetscale token": ("pscale" + "_tkn_", WORD, 43),
    "supabase key": ("sb" + "p_", HEX, 40),
    "vercel token": ("vc" + "p_", ALNUM, 24),
    "netlify token": ("nf" + "p_", ALNUM, 40),
    "render key": ("rn" + "d_", ALNUM, 32),
    "replicate token": ("r8" + "_", ALNUM, 37),
    "groq key": ("gs" + "k_", ALNUM, 52),
    "xai key": ("xa" + "i-", ALNUM, 80),
    "perplexity key": ("ppl" + "x-", ALNUM, 48),
    "nvidia key": ("nva" + "pi-", WORD, 64),
    "tavily key": ("tvl" + "y-", ALNUM, 32),
    "circleci token": ("CCI" + "PAT_", ALNUM, 62),
    "buildkite token": ("bku" + "a_", ALNUM, 40),
    "easypost key": ("EZ" + "AK", ALNUM, 54),
    "typeform token": ("tf" + "p_", WORD, 59),
    "contentful token": ("CF" + "PAT-", WORD, 43),
    "prefect key": ("pn" + "u_", ALNUM, 36),
    "sourcegraph token": ("sg" + "p_", HEX, 40),
    "alibaba key": ("LT" + "AI", ALNUM, 20),
    "tencent key": ("AK" + "ID", ALNUM, 32),
    "tailscale key": ("tskey-" + "auth-", ALNUM, 24),
    "openshift token": ("sha" + "256~", WORD, 43),
    "artifactory key": ("AK" + "Cp", ALNUM, 69),
    "readme key": ("rd" + "me_", LOWER, 70),
    "shippo token": ("shippo" + "_live_", HEX, 40),
    "duffel token": ("duffel" + "_live_", WORD, 43),
    "infracost key": ("ic" + "o-", ALNUM, 32),
    "langsmith key": ("lsv2" + "_pt_", HEX, 32),
}
AROUND = (
    "use {} to push",
    "TOKEN={}",
    '{{"value": "{}"}}',
    "  token: {}",
    "curl -H 'X-Key: {}' https://api.example.com",
)

# Kind to the line it is usually in; `{}` is a password that a person chose.
LINES = {
    "environment variable": "DB_PASSWORD={}",
    "exported variable": "export PGPASSWORD={}",
    "yaml": "  password: {}",
    "json": '{{"user": "app", "password": "{}"}}',
    "toml": 'password = "{}"',
    "python": "connect(host='db', password='{}')",
    "properties": "spring.datasource.password={}",
    "xml": "<password>{}</password>",
    "xml attribute": '<add key="DbPassword" value="{}" />',
    "kubernetes": "        - name: DB_PASSWORD\n          value: {}",
    "container": '{{"name": "DB_PASSWORD", "value": "{}"}}',
    "terraform": '  master_password = "{}"',
    "ini": "smtp_pass = {}",
    "go flag": "influx -username app -password {} -execute x",
    "postgres url": "postgresql://app:{}@db.internal:5432/app",
    "redis url": "redis://:{}@cache:6379/0",
    "amqp url": "amqp://app:{}@mq:5672/",
    "https url": "git clone https://deploy:{}@git.example.com/x.git",
    "jdbc url": "jdbc:mysql://db/app?user=app&password={}",
    "docker login": "docker login -u app -p {} registry.example.com",
    "podman login": "podman login --username app --password {} quay.io",
    "helm registry": "helm registry login -u app -p {} r.example.com",
    "az login": "az login --service-principal -u app -p {} --tenant t",
    "mysql": "mysql -h db -uroot -p{} app",
    "mysqldump": "mysqldump --password={} app > dump.sql",
    "psql": "PGPASSWORD={} psql -h db app",
    "curl": "curl -u app:{} https://api.example.com/x",
    "wget": "wget --user=app --http-password={} https://example.com",
    "sshpass": "sshpass -p {} ssh app@host",
    "redis-cli": "redis-cli -h cache -a {} ping",
    "mongosh": "mongosh db.internal -u app -p {}",
    "htpasswd": "htpasswd -b /etc/nginx/.htpasswd app {}",
    "htpasswd to stdout": "htpasswd -nb app {}",
    "ldapsearch": "ldapsearch -x -D cn=admin -w {} -b dc=x",
    "zip": "zip -P {} out.zip a b",
    "7z": "7z a -p{} out.7z folder",
    "openssl": "openssl enc -aes-256-cbc -in a -pass pass:{}",
    "openssl, key": "openssl enc -aes-256-cbc -k {} -in a",
    "ssh-keygen": "ssh-keygen -t ed25519 -N {} -f key",
    "sqlcmd": "sqlcmd -S db -U sa -P {} -Q 'select 1'",
    "smbclient": "smbclient //nas/share -U app%{}",
    "keytool": "keytool -list -keystore k.jks -storepass {}",
    "sudo from a pipe": "echo '{}' | sudo -S systemctl restart x",
    "login from a pipe": "echo {} | docker login --username app --password-stdin",
    "chpasswd": "echo 'app:{}' | chpasswd",
    "gpg": "gpg --batch --passphrase {} -c file",
    "pgpass": "db.internal:5432:app:app:{}",
    "pgpass for all": "*:*:*:app:{}",
    "netrc": "machine git.example.com login app password {}",
    "english": "my password is {}",
    "english, for a place": "the password for the staging server: {}",
    "english, with": "log in as user app with password {}",
    "english, quoted": 'The database password is "{}".',
    "english, a pair": "credentials for staging: admin / {}",
    "english, as": "use {} as the password",
    "english, with a wide colon": "password\uff1a{}",
    "german": "mein Passwort ist {}",
    "german, for a place": "Das Kennwort für den Testserver lautet {}",
    "french": "le mot de passe est {}",
    "french, with a colon": "mot de passe : {}",
    "spanish": "la contraseña del servidor es {}",
    "portuguese": "a senha é {}",
    "italian": "la password è {}",
    "dutch": "het wachtwoord is {}",
    "polish": "hasło: {}",
    "russian": "пароль: {}",
    "chinese": "密码是{}",
    "chinese, with a colon": "数据库密码\uff1a{}",
    "japanese": "パスワードは{}です",
    "korean": "비밀번호는 {}",
}


def _pem(source: random.Random) -> str:
    body = "\n".join(some(source, BASE64, 64) for _ in range(12))
    return f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{body}\n-----END RSA PRIVATE {'KEY'}-----"


def _jwt(source: random.Random) -> str:
    head, claims = ({"alg": "HS256", "typ": "JWT"}, {"sub": some(source, LOWER, 12), "iat": source.randrange(10**9)})
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (head, claims))
    return ".".join((*parts, some(source, WORD, 43)))


# Kind to the secret and the text around it, for what has a form of its own.
FORMS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "private key": lambda source: ((key := _pem(source)).split("\n")[3], f"the key:\n{key}\n"),
    "private key in json": lambda source: ((key := _pem(source)).split("\n")[2], json.dumps({"private_key": key})),
    "jwt": lambda source: ((token := _jwt(source)), f"Authorization: Bearer {token}"),
    "jwt in a url": lambda source: ((token := _jwt(source)), f"GET /x?jwt={token} HTTP/1.1"),
    "aws secret key": lambda source: ((key := some(source, BASE64, 40)), f"aws_secret_access_key = {key}"),
    "aws secret beside its key": lambda source: (
        (key := some(source, BASE64, 40)),
        f"{'AK' + 'IA'}{some(source, UPPER, 16)},{key}",
    ),
    "bearer": lambda source: ((token := some(source, ALNUM, 40)), f"Authorization: Bearer {token}"),
    "basic": lambda source: (
        (pair := base64.b64encode(f"app:{password(source)}".encode()).decode()),
        f"Authorization: Basic {pair}",
    ),
    "azure storage key": lambda source: (
        (key := base64.b64encode(source.randbytes(64)).decode()),
        f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={key};EndpointSuffix=core.windows.net",
    ),
    "azure sas": lambda source: (
        (sig := quote(base64.b64encode(source.randbytes(32)).decode(), safe="")),
        f"https://x.blob.core.windows.net/c/f?sv=2022-11-02&se=2027-01-01&sr=b&sp=r&sig={sig}",
    ),
    "1password secret key": lambda source: (
        (key := "-".join(["A3", *(some(source, UPPER, size) for size in (6, 6, 5, 5, 5, 5))])),
        f"Secret Key: {key}",
    ),
    "telegram token": lambda source: (
        (key := f"{source.randrange(10**8, 10**9)}:AA{some(source, WORD, 33)}"),
        f"https://api.telegram.org/bot{key}/getMe",
    ),
    "slack webhook": lambda source: (
        (key := some(source, ALNUM, 24)),
        f"https://hooks.slack.com/services/T{some(source, UPPER, 8)}/B{some(source, UPPER, 8)}/{key}",
    ),
    "discord webhook": lambda source: (
        (key := some(source, WORD, 68)),
        f"https://discord.com/api/webhooks/{source.randrange(10**17, 10**18)}/{key}",
    ),
    "sendgrid key": lambda source: (
        (key := f"{'S' + 'G'}.{some(source, WORD, 22)}.{some(source, WORD, 43)}"),
        f"mail key {key}",
    ),
    "npmrc": lambda source: ((key := some(source, ALNUM, 40)), f"//npm.example.com/:_authToken={key}"),
    "docker config": lambda source: (
        (pair := base64.b64encode(f"app:{password(source)}".encode()).decode()),
        json.dumps({"auths": {"r.example.com": {"auth": pair}}}),
    ),
    "kubeconfig": lambda source: (
        (key := base64.b64encode(_pem(source).encode()).decode()),
        f"    client-key-data: {key}",
    ),
    "cookie": lambda source: ((key := some(source, ALNUM, 32)), f"Cookie: theme=dark; sessionid={key}"),
    "set-cookie": lambda source: ((key := some(source, ALNUM, 40)), f"Set-Cookie: session={key}; Path=/; HttpOnly"),
    "java session": lambda source: ((key := some(source, HEX.upper(), 32)), f"GET /x;jsessionid={key}?a=1"),
    "php session": lambda source: ((key := some(source, LOWER, 26)), f"curl -b PHPSESSID={key} https://example.com"),
    "express session": lambda source: (
        (key := f"s%3A{some(source, WORD, 32)}.{some(source, ALNUM, 43)}"),
        f"Cookie: connect.sid={key}",
    ),
    "api key in prose": lambda source: ((key := some(source, ALNUM, 32)), f"the api key for weather is {key}"),
    "token in prose": lambda source: ((key := some(source, ALNUM, 40)), f"My token is {key}, keep it"),
    "query parameter": lambda source: ((key := some(source, ALNUM, 32)), f"GET /v1?api_key={key}&q=1"),
    "header": lambda source: ((key := some(source, ALNUM, 40)), f"X-Api-Key: {key}"),
    "client secret": lambda source: ((key := some(source, WORD, 40)), json.dumps({"client_secret": key})),
}


def samples(seed: int) -> list[Sample]:
    """One of every kind."""
    source = random.Random(seed)
    found = []
    for kind, (prefix, alphabet, length) in PREFIXED.items():
        tail = f"_{some(source, HEX, 10)}" if kind == "langsmith key" else ""
        secret = prefix + some(source, alphabet, length) + tail
        found.append(Sample(kind, source.choice(AROUND).format(secret), secret))
    for kind, line in LINES.items():
        secret = quote(password(source), safe="") if kind.endswith("url") else password(source)
        found.append(Sample(kind, line.format(secret), secret))
    for kind, form in FORMS.items():
        secret, text = form(source)
        found.append(Sample(kind, text, secret))
    return found


def is_masked(sample: Sample) -> bool:
    """Whether the value is gone, as a whole and by its end."""
    text = redact(sample.text).text
    return sample.secret not in text and sample.secret[-12:] not in text


def ordinary(count: int, seed: int) -> Iterator[str]:
    """Lines full of what chance made and nobody has to hide: hashes, ids, checksums of packages, data."""
    source = random.Random(seed)
    for number in range(count):
        digest = hashlib.sha256(source.randbytes(8))
        yield (
            f"commit {digest.hexdigest()[:40]}",
            f"sha256:{digest.hexdigest()}  dist/app-{number}.tar.gz",
            f'  "integrity": "sha512-{base64.b64encode(source.randbytes(64)).decode()}",',
            f'ETag: W/"{digest.hexdigest()[:32]}"',
            f"trace_id={uuid.UUID(bytes=source.randbytes(16))} span={digest.hexdigest()[:16]} session_id={number}",
            f"<img src='data:image/png;base64,{base64.b64encode(source.randbytes(90)).decode()}'>",
            f"{number:08x}-{digest.hexdigest()[:4]} GET /login HTTP/1.1 200 {number} account/{number}",
            f"Failed password for root from 10.0.0.{number % 255} port {number % 65535} ssh2",
        )[number % 8]


def mistakes(folders: list[Path], most: int) -> tuple[int, list[str]]:
    """How many lines were searched, and what was masked in them that is no address with a password.

    Tests of packages are left out: they are full of passwords that somebody invented. A value that is repeated counts
    once.
    """
    lines, wrong = 0, {}
    for path in sorted(path for folder in folders for path in folder.rglob("*") if _searched(path.relative_to(folder))):
        if lines >= most:
            break
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        lines += text.count("\n")
        for place in search.secrets(text):
            begin = text.rfind("\n", 0, place.start) + 1
            if "://" not in text[begin : place.start] or text[place.end : place.end + 1] != "@":
                around = text[max(begin, place.start - 40) : place.end + 10]
                wrong[text[place.start : place.end]] = f"{path.name}: {around!r}"
    return lines, list(wrong.values())


def _searched(path: Path) -> bool:
    return path.suffix in SEARCHED and not {"site-packages", "test", "tests", "idle_test"} & set(path.parts)


SEARCHED = {".py", ".pyi", ".txt", ".md", ".rst", ".json", ".log", ".csv", ".js", ".toml"}


def run(sizes: Sizes) -> None:
    rounds = sizes.pick(50, 3)
    tried = [sample for seed in range(rounds) for sample in samples(int(time.time()) + seed)]
    missed = [sample for sample in tried if not is_masked(sample)]
    kinds = len({sample.kind for sample in tried})
    share = 1 - len(missed) / len(tried)
    names = ", ".join(sorted({sample.kind for sample in missed})[:6]) or "none"
    row = (str(kinds), f"{len(tried):,}", f"{share:.2%}", names)
    table("Masked", ("kinds", "samples", "masked", "kinds with a miss"), [row])
    alone(f"secrets masked, {kinds} kinds", f"{share:.2%}", verdict(1 - share, 1 - GOAL, "≥ 98 %"))
    noise = sum(redact(line).count for line in ordinary(sizes.pick(40_000, 4_000), 1))
    alone("hashes, ids and data masked by mistake", str(noise), verdict(float(noise), 0.0, "0"))
    places = [Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib")]
    began = time.perf_counter()
    lines, wrong = mistakes(places, sizes.pick(6_000_000, 200_000))
    rate = len(wrong) / max(1, lines) * 100_000
    found = (f"{lines:,}", str(len(wrong)), f"{rate:.2f}", str(noise), span(time.perf_counter() - began))
    table("Masked by mistake", ("lines", "values", "of 100,000 lines", "hashes and ids", "took"), [found])
    print("\n".join(f"  {line}" for line in wrong[:20]))
    alone("masked by mistake, lines of 100,000", f"{rate:.2f}", verdict(rate, MISTAKES, "≤ 1"))
