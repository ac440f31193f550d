"""Secrets recognised by format: a fixed prefix, then a body of a known alphabet and length.

A pattern is tried where one of its literals occurs, so ordinary text costs a few substring searches. Linear
time comes from three rules that a new line in the table must keep: quantifiers are possessive or bounded; a run that
has no upper bound is the last part of its pattern (what matched is then skipped); and patterns with a run before a
separator (`run=True`) skip the whole run when they fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from limpet.record import NamedTuple
from limpet.redaction.values import Span, late, mixed

_ALNUM = "[A-Za-z0-9]"
_WORD = "[A-Za-z0-9_-]"
_END = "(?![A-Za-z0-9])"

# Nearly all of these secrets have a stretch of at least 20 such characters with the literal in it. A few percent of
# a text are such stretches, so searching them for some 150 literals is cheap.
_STRETCH = late(r"[A-Za-z0-9_.\-]{20,}+")
_RUN = late(r"[A-Za-z0-9_-]*+")
_AWS_PAIR = late(r"[\s\"',:;|\\]{1,8}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")
# Formats that nothing else has: also behind letters, where a separator was lost.
_UNMISTAKABLE = frozenset(("github-token", "github-pat", "gitlab-token", "slack-token", "anthropic-key", "npm-token"))
_BEFORE = 40  # characters that are looked at before a secret
_NO_LETTERS = late(
    r"(?:\\[nrtbfave]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[0-3][0-7]{2}|%[0-9a-fA-F]{2}|\[[0-9;:?]{0,32}[A-Za-z])\Z"
)


# Compiling all of them would take longer than most programs need to start; few are ever met.
_compiled = cache(re.compile)


class _Format(NamedTuple):
    """One known look. The pattern is matched `back` characters before the literal."""

    kind: str
    literals: tuple[str, ...]
    pattern: str
    back: int = 0
    digits: bool = True  # it must be mixed; words and rows of x are no secrets
    run: bool = False
    gate: str = ""  # for literals that need not be in a stretch: what must be in the text for any of them to be there
    after: bool = False  # the literal itself stays readable; it may occur anywhere


def _format(kind: str, literals: str, body: str, back: int = 0, gate: str = "", **how: bool) -> _Format:
    """The pattern is one of the literals and the body; with `back`, the body alone."""
    words = tuple(literals.split())
    start = "" if back else "(?:" + "|".join(re.escape(word) for word in words) + ")"
    return _Format(kind, words, start + body, back, gate=gate, **how)


FORMATS = (
    _format("aws-access-key", "AKIA ASIA ABIA ACCA", f"[A-Z0-9]{{16}}{_END}", digits=False),
    _format("aws-bedrock-key", "ABSK", "[A-Za-z0-9+/]{90,}+={0,2}", gate="ABSK"),
    _format("aws-session-token", "IQoJb3JpZ2lu", "[A-Za-z0-9+/%]{60,}+={0,2}", gate="IQoJb3JpZ2lu"),
    _format("aws-session-token", "FwoGZXIvYXdz FQoGZXIvYXdz", "[A-Za-z0-9+/%]{60,}+={0,2}", gate="oGZXIvYXdz"),
    _format("limpet-token", "limpet_", f"[0-9a-f]{{12}}_[0-9a-f]{{64}}{_END}"),
    _format("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", f"{_ALNUM}{{30}}[A-Za-z0-9_]*+"),
    _format("github-pat", "github_pat_", "[A-Za-z0-9_]{22,}+"),
    _format(
        "gitlab-token",
        "glpat- gldt- glptt- glrt- glcbt- glimt- glft- glsoat- glffct- gloas- glagent- GR1348941",
        f"{_WORD}{{20,}}+(?:\\.{_WORD}{{2,}}+){{0,2}}",
    ),
    _format(
        "slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxo- xoxc- xoxd- xoxe. xapp- xwfp-", "[A-Za-z0-9.%-]{15,}+"
    ),
    _format("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_", f"{_ALNUM}{{16,}}+"),
    _format("webhook-secret", "whsec_", "[A-Za-z0-9+/]{24,}+={0,2}", gate="whsec_"),
    _format("anthropic-key", "sk-ant-", f"{_WORD}{{20,}}+"),
    _format("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None- sess-", f"{_WORD}{{20,}}+"),
    _format("openrouter-key", "sk-or-", f"{_WORD}{{32,}}+"),
    _format("langfuse-key", "sk-lf-", "[0-9a-f-]{36}" + _END),
    _format("openai-key", "sk-", f"{_ALNUM}{{32,}}+"),
    _format("google-api-key", "AIza", f"{_WORD}{{35}}{_END}"),
    _format("google-api-key", "AQ.Ab", f"{_WORD}{{30,}}+"),
    _format("google-oauth-token", "ya29.", f"{_WORD}{{20,}}+(?:\\.{_WORD}++)*+"),
    _format("google-refresh-token", "1//0", f"{_WORD}{{40,}}+", gate="1//0"),
    _format("google-client-secret", "GOCSPX-", f"{_WORD}{{24,}}+"),
    _format("azure-client-secret", "Q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}+", 4, gate="Q~"),
    _format("azure-api-key", "JQQJ99", f"{_ALNUM}{{52}}JQQJ99{_ALNUM}{{26}}{_END}", 52),
    _format("azure-sas", "sig=", r"(?:[A-Za-z0-9+/]|%2[BbFf]){40,}+(?:=|%3[Dd]){0,2}", gate="sig=", after=True),
    _format("npm-token", "npm_", f"{_ALNUM}{{36,}}+"),
    _format("pypi-token", "pypi-AgE", f"{_WORD}{{50,}}+"),
    _format("docker-token", "dckr_pat_ dckr_oat_", f"{_WORD}{{20,}}+"),
    _format(
        "jwt",
        "eyJ",
        rf"{_WORD}{{8,}}+\.(?:{_WORD}{{8,}}+\.{_WORD}{{16,}}+|{_WORD}*+\.{_WORD}{{8,}}+\.{_WORD}++\.{_WORD}++)",
        run=True,
    ),
    _format("1password-token", "ops_eyJ", f"{_WORD}{{60,}}+"),
    _format("1password-key", "A3-", "[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}" + _END),
    _format("age-key", "AGE-SECRET-KEY-1", "[A-Z0-9]{50,}+"),
    _format("sendgrid-key", "SG.", rf"{_WORD}{{16,32}}+\.{_WORD}{{32,}}+"),
    _format("twilio-key", "SK", f"[0-9a-f]{{32}}{_END}"),
    _format("heroku-key", "HRKU-", f"{_WORD}{{36,}}+"),
    _format("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", "[0-9a-f]{64}"),
    _format("huggingface-token", "hf_ api_org_", f"{_ALNUM}{{30,}}+", digits=False),
    _format("databricks-token", "dapi", "[0-9a-f]{32}(?:-[0-9])?" + _END),
    _format("mailgun-key", "key-", f"[0-9a-f]{{32}}{_END}"),
    _format("mailchimp-key", "-us", f"[0-9a-f]{{32}}-us[0-9]{{1,2}}{_END}", 32),
    _format("brevo-key", "xkeysib- xsmtpsib-", f"{_WORD}{{60,}}+"),
    _format("postman-key", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}"),
    _format("newrelic-key", "NRAK- NRJS- NRII- NRIQ- NRRA-", f"{_WORD}{{19,}}+"),
    _format("grafana-token", "glsa_ glc_", "[A-Za-z0-9_+/]{32,}+={0,2}", gate="gl"),
    _format("sentry-token", "sntrys_ sntryu_", "[A-Za-z0-9_+/=-]{40,}+", gate="sntry"),
    _format("linear-key", "lin_api_ lin_oauth_", f"{_ALNUM}{{32,}}+"),
    _format("notion-token", "ntn_ secret_", f"{_ALNUM}{{43,}}+"),
    _format("airtable-token", "pat", rf"{_ALNUM}{{14}}\.[0-9a-f]{{64}}"),
    _format("figma-token", "figd_ figu_", f"{_WORD}{{36,}}+"),
    _format("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9_.-]{40,}+"),
    _format("vault-token", "hvs. hvb. hvr.", f"{_WORD}{{24,}}+"),
    _format("terraform-token", ".atlasv1.", rf"{_ALNUM}{{14}}\.atlasv1\.{_WORD}{{60,}}+", 14),
    _format("pulumi-token", "pul-", f"[0-9a-f]{{40}}{_END}"),
    _format("shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_", "[0-9a-fA-F]{32}"),
    _format("square-token", "sq0atp- sq0csp- sq0idp-", f"{_WORD}{{22,}}+"),
    _format("square-token", "EAAAE EAAAl", f"{_WORD}{{58,}}+"),
    _format("facebook-token", "EAACEdEose0cBA EAAB EAAC EAAD EAAG EAAH EAAJ EAAM EAAW", f"{_ALNUM}{{90,}}+"),
    _format("dropbox-token", "sl.", f"(?:u\\.)?{_WORD}{{120,}}+"),
    _format("atlassian-token", "ATATT3 ATCTT3 ATBB", "[A-Za-z0-9_=-]{24,}+"),
    _format("rubygems-key", "rubygems_", "[0-9a-f]{48}"),
    _format("nuget-key", "oy2", f"[a-z0-9]{{43}}{_END}"),
    _format("crates-token", "cio", f"{_ALNUM}{{32}}{_END}"),
    _format("clojars-token", "CLOJARS_", "[0-9a-f]{60}"),
    _format("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{32,}+"),
    _format("supabase-key", "sbp_ sb_secret_", f"{_WORD}{{28,}}+"),
    _format("vercel-token", "vcp_ vck_ vca_ vci_ vcr_ vercel_blob_rw_", "[A-Za-z0-9_]{24,}+"),
    _format("netlify-token", "nfp_ nfc_ nfo_ nfu_", f"{_ALNUM}{{36,}}+"),
    _format("fly-token", "FlyV1", r" fm[0-9a-z]{1,3}_[A-Za-z0-9+/_,=-]{40,}+", gate="FlyV1", after=True),
    _format("render-key", "rnd_", f"{_ALNUM}{{28,}}+"),
    _format("replicate-token", "r8_", f"{_ALNUM}{{36,}}+"),
    _format("groq-key", "gsk_", f"{_ALNUM}{{40,}}+"),
    _format("xai-key", "xai-", f"{_ALNUM}{{60,}}+"),
    _format("perplexity-key", "pplx-", f"{_ALNUM}{{40,}}+"),
    _format("nvidia-key", "nvapi-", f"{_WORD}{{40,}}+"),
    _format("tavily-key", "tvly-", f"{_WORD}{{24,}}+"),
    _format("langsmith-key", "lsv2_pt_ lsv2_sk_", "[0-9a-f]{32}_[0-9a-f]{10}"),
    _format("circleci-token", "CCIPAT_ CCIPRJ_", "[A-Za-z0-9_]{40,}+"),
    _format("buildkite-token", "bkua_ bkct_", f"{_ALNUM}{{36,}}+"),
    _format("dynatrace-token", "dt0c01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _format("easypost-key", "EZAK EZTK", f"{_ALNUM}{{54}}{_END}"),
    _format("flutterwave-key", "FLWSECK- FLWSECK_", f"{_WORD}{{20,}}+"),
    _format(
        "braintree-token",
        "access_token$production$ access_token$sandbox$",
        r"[0-9a-z]{16}\$[0-9a-f]{32}",
        gate="access_token$",
    ),
    _format("typeform-token", "tfp_", f"{_WORD}{{40,}}+"),
    _format("contentful-token", "CFPAT-", f"{_WORD}{{40,}}+"),
    _format("prefect-key", "pnu_ pnb_", f"{_ALNUM}{{36}}{_END}"),
    _format("sourcegraph-token", "sgp_", "(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    _format("adafruit-key", "aio_", f"{_ALNUM}{{28}}{_END}"),
    _format("cloudflare-ca-key", "v1.0-", "[0-9a-f]{24}-[0-9a-f]{146}"),
    _format("alibaba-key", "LTAI", f"{_ALNUM}{{16,24}}{_END}"),
    _format("tencent-key", "AKID", f"{_ALNUM}{{32}}{_END}"),
    _format("yandex-key", "AQVN", f"{_WORD}{{35,38}}{_END}"),
    _format("mapbox-token", "sk.eyJ", rf"{_WORD}{{20,}}+\.{_WORD}{{20,}}+", run=True),
    _format("infracost-key", "ico-", f"{_ALNUM}{{32}}{_END}"),
    _format("tailscale-key", "tskey-", f"[a-z]{{2,10}}-{_ALNUM}{{8,}}+(?:-{_ALNUM}++)?"),
    _format("openshift-token", "sha256~", f"{_WORD}{{43}}{_END}", gate="sha256~"),
    _format("artifactory-key", "AKCp cmVmdGtuOj", f"{_ALNUM}{{50,}}+"),
    _format("firebase-key", ":APA91b", rf"AAAA{_WORD}{{7}}:APA91b{_WORD}{{100,}}+", 11, gate="APA91b"),
    _format("readme-key", "rdme_", "[a-z0-9]{60,}+"),
    _format("frameio-token", "fio-u-", f"{_WORD}{{60,}}+"),
    _format("shippo-token", "shippo_live_ shippo_test_", "[0-9a-f]{40}"),
    _format("duffel-token", "duffel_live_ duffel_test_", f"{_WORD}{{40,}}+"),
    _format(
        "launchdarkly-key", "sdk- mob- api-", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}" + _END
    ),
    _format("telegram-token", ":AA", f"{_WORD}{{33}}{_END}", gate=":AA"),
    _format(
        "slack-webhook",
        "hooks.slack.com/",
        r"(?:services|workflows|triggers)/[A-Za-z0-9/_-]{30,}+",
        gate="hook",
        after=True,
    ),
    _format("discord-webhook", "/api/webhooks/", rf"[0-9]{{17,20}}/{_WORD}{{60,}}+", gate="hook", after=True),
    _format("teams-webhook", "webhook.office.com/", r"webhookb2/[A-Za-z0-9@/-]{60,}+", gate="hook", after=True),
)
_DISCORD = late(rf"[MNO]{_WORD}{{23,27}}+\.{_WORD}{{6}}\.{_WORD}{{27,}}+")


def known_formats(text: str) -> Iterator[Span]:
    """Every secret of a known format in an ASCII text."""
    stretches = "\n".join(_STRETCH.findall(text))
    for form in FORMATS:
        if form.gate and form.gate not in text:
            continue
        place = text if form.gate else stretches
        for literal in form.literals if place else ():
            if literal in place:
                yield from _matches(form, literal, text)
    if _DISCORD.search(stretches):
        for match in _DISCORD.finditer(text):
            if free(text, match.start()) and mixed(match.group()):
                yield Span(match.start(), match.end(), "discord-token", match.group())


def free(text: str, start: int) -> bool:
    r"""Whether a secret may start here: not in the middle of a word, where \n, %3D and a colour are no letters."""
    if start == 0 or not text[start - 1].isalnum():
        return True
    before = text[max(0, start - _BEFORE) : start]
    return any(sign in before for sign in "\\%[") and bool(_NO_LETTERS.search(before))


def _matches(form: _Format, literal: str, text: str) -> Iterator[Span]:
    position = text.find(literal)
    while position >= 0:
        start = position - form.back
        # A digit precedes the colon of a Telegram token.
        inside = form.after or form.kind == "telegram-token" or form.kind in _UNMISTAKABLE
        if form.kind == "aws-access-key" and text[start - 1 : start].islower():
            inside = True  # behind capital letters it may be a part of something encoded
        match = _compiled(form.pattern).match(text, start) if start >= 0 and (inside or free(text, start)) else None
        following = position + len(literal)
        if match:
            following = max(following, match.end())
            if not form.digits or mixed(match.group()):
                yield from _spans(form, text, match.start() + len(literal) * form.after, match.end())
        elif form.run and (skip := _RUN.match(text, position)):
            following = max(following, skip.end())
        position = text.find(literal, following)


def _spans(form: _Format, text: str, start: int, end: int) -> Iterator[Span]:
    if form.kind == "telegram-token":
        digits = start
        while digits > 0 and start - digits < 12 and "0" <= text[digits - 1] <= "9":
            digits -= 1
        if start - digits not in range(7, 12):
            return
        start = digits
    elif form.kind == "huggingface-token" and text[start:end].islower():
        return
    yield Span(start, end, form.kind, text[start:end])
    if form.kind == "aws-access-key" and (pair := _AWS_PAIR.match(text, end)) and mixed(pair.group(1)):
        yield Span(pair.start(1), pair.end(1), "aws-secret-key", pair.group(1))
