"""What looks like a credential is found by its own form, and what notes are full of passes."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone import Draft, RuleError, UsageError
from ledgerstone.core.credential_rules import CREDENTIALS, Credential
from ledgerstone.core.credentials import NAMES, Found, check, check_text, scan, sorts

CHANCE = random.Random(7)
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789"


def drawn(size: int, letters: str = LETTERS) -> str:
    """So many characters, drawn as somebody's key is."""
    return "".join(CHANCE.choices(letters, k=size))


HEX = "0123456789abcdef"
PEM = "\n".join(drawn(64) for _ in range(12))
# Made here, so that no scanner takes this file for a leak.
REAL = {
    "aws_access_token": f"AKIA{drawn(16, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}",
    "github_pat": f"ghp_{drawn(36)}",
    "github_fine_grained_pat": f"github_pat_{drawn(82)}",
    "gitlab_pat": f"glpat-{drawn(20)}",
    "anthropic_api_key": f"sk-ant-api03-{drawn(93)}AA",
    "openai_api_key": f"sk-proj-{drawn(58)}T3BlbkFJ{drawn(58)}",
    "huggingface_access_token": f"hf_{drawn(34, LETTERS[:49])}",
    "slack_bot_token": f"xoxb-{drawn(12, '0123456789')}-{drawn(12, '0123456789')}-{drawn(24)}",
    "stripe_access_token": f"sk_live_{drawn(24)}",
    "gcp_api_key": f"AIza{drawn(35)}",
    "npm_access_token": f"npm_{drawn(36)}",
    "pypi_upload_token": f"pypi-AgEIcHlwaS5vcmc{drawn(80)}",
    "jwt": f"eyJ{drawn(30)}.eyJ{drawn(60)}.{drawn(43)}",
    "private_key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM}\n-----END OPENSSH PRIVATE KEY-----",
    "generic_credential_uri": f"postgres://cedar:{drawn(14)}@db.cedar.dev:5432/main",
}
ORDINARY = [
    "The staging database is read-only on Fridays.",
    f"Fixed in {drawn(40, HEX)}; see also {drawn(7, HEX)} and sha256 {drawn(64, HEX)}.",
    f"The key is {drawn(32, HEX)}, bitbucket commit: {drawn(40, HEX)}, api_key = see the vault.",
    "id 014df517-39d1-4453-b7b3-9930c563627c, trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "mem_enxh0tnfm4pamjhc@2 ns_k92hv89gacbzwg5s key_symbxc2e4hh93k95 prn_yprpa8jab2vs3wer grt_b0d25chdwm274bj4",
    "https://example.org/team/here/issues/17?tab=comments#L20-L31 and git@github.com:ada/cedar.git",
    "Use postgres://user:password@localhost/db in tests, or https://user:pass@example.com.",
    "DATABASE_URL=postgres://app:${DB_PASSWORD}@db/main and redis://:$REDIS_PASSWORD@cache:6379",
    "export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
    "lip_reading_accuracy_score, prf_performance_regression, tss_temporary_storage_service, unkey_everything_here",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn(36) + " ada@cedar",
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA" + drawn(42) + "=\n-----END PUBLIC KEY-----",
    "A github_pat_ begins like that, and sk-ant-api03- is Anthropic's; ghp_ too.",
    "node_modules/.pnpm/@babel+core@7.24.0/node_modules/@babel/core/lib/index.js:1234:56",
    "integrity sha512-" + base64.b64encode(CHANCE.randbytes(64)).decode(),
    "2026-11-30T17:02:01.123456Z INFO worker-3 request_id=req_" + drawn(24) + " took 12ms",
    "\u5bc6\u7801\u5728\u4fdd\u9669\u7bb1\u91cc",
]


@pytest.mark.parametrize("rule", REAL)
def test_a_credential_is_found_where_it_stands(rule: str) -> None:
    """By its rule, from its first character to its last, in the middle of a note."""
    before = "Ada said: use "
    secret = REAL[rule]

    found = [each for each in scan(Draft(text=f"{before}{secret} for that.")) if each.rule == rule]

    assert len(found) == 1
    start = len(before) + (secret.index(":", 10) + 1 if rule == "generic_credential_uri" else 0)
    end = secret.index("@") if rule == "generic_credential_uri" else len(secret)
    assert found == [Found(rule, "text", start, len(before) + end)]


# What is given, and to what.
GIVEN = {
    'password = "hunter2hunter"': "hunter2hunter",
    "passwd='correcthorsebattery'": "correcthorsebattery",
    "DB_PASSWORD=correcthorse": "correcthorse",
    "PGPASSWORD=xk29fjaa psql -h db": "xk29fjaa",
    "the staging password: hunter2hunter, ask Mia": "hunter2hunter",
    '{"password": "S3cret!pass"}': "S3cret!pass",
    "Server=db;User Id=sa;Password=Passw0rd!x;": "Passw0rd!x",
    "mysql -u root --password=hunter2hunter main": "hunter2hunter",
    "export API_TOKEN=9f8a7b6c5d4e3f2a1b": "9f8a7b6c5d4e3f2a1b",
    'SECRET_KEY = "a8f5f167f44f4964e6c998dee827110c"': "a8f5f167f44f4964e6c998dee827110c",
    "the password: hunter27": "hunter27",
    "(the staging password: Hunter2hunterX).": "Hunter2hunterX",
    'password = "hunter2hunter!"': "hunter2hunter!",
    'password = "maplesyrup"': "maplesyrup",
    'password = "maple+syr"': "maple+syr",
    'password = "mapleSyru"': "mapleSyru",
    "mysql://ada:maplesyrup@db.cedar.dev/main": "maplesyrup",
    "SECRET_KEY=9F8A7B6C5D4E3F2A1B": "9F8A7B6C5D4E3F2A1B",
    "MY_API_KEY_SECRET_TOKEN=9f8a7b6c5d4e3f2a1b": "9f8a7b6c5d4e3f2a1b",
    "not the pwd but the password: hunter2hunter": "hunter2hunter",
    "clickhouse://ada:s3cr3tpass@ch.cedar.dev/x": "s3cr3tpass",
    "postgres://user:hunter2hunter@host/db": "hunter2hunter",
}
NOT_GIVEN = [
    "password=<your password>, or password=your-password-here, or PASSWORD=xxxxxx",
    "DB_PASSWORD=${DB_PASSWORD} and DB_PASSWORD=$DB_PASSWORD and password=%s and password: {{ db_password }}",
    "password: changeme, POSTGRES_PASSWORD=postgres, PASSWORD=changeme123, password=test1234",
    'password = os.environ["DB_PASSWORD"], password=getpass.getpass(), password = config.db.password',
    "password: argon2id; password: sha256-hashed; password_hash = $2b$12$abcdefgh",
    "Password: at least 12 characters, one digit. password:required",
    "password: hunter2, password: whatever Ada chose, password: hunter2hunter-",
    'password = "maplesyru" and "password": "Passwortvergessen"',
    'password = "Kennwort" and "password": "Passwort vergessen?" and type="password"',
    "The password is kept in 1Password: vault Cedar. password: see vault item cedar-db-42",
    "DB_PASSWORD_FILE=/run/secrets/db, password=/run/secrets/db2, PWD=/home/ada/src2, pwd: /home/ada",
    "password = user_password; set password = NULL; password=aaaaaaa1a",
    "CSRF_TOKEN is set by middleware; API_KEY=your-api-key-1234567; SECRET_KEY=${SECRET_KEY:-dev}; TOKEN=aaaaaaaaaaa1",
]


@pytest.mark.parametrize("text", GIVEN)
def test_what_is_given_to_the_name_of_a_secret_is_found(text: str) -> None:
    """A password in an assignment, an environment, in prose, in an address of any protocol: the value, and no more."""
    found = {text[each.start : each.end] for each in scan(Draft(text=text))}

    assert found == {GIVEN[text]}


@pytest.mark.parametrize("text", NOT_GIVEN, ids=range(len(NOT_GIVEN)))
def test_what_only_stands_where_a_password_would_passes(text: str) -> None:
    """Placeholders, references, calls, methods, rules about passwords, paths, translations."""
    assert list(scan(Draft(text=text))) == []


KEY = "a8f5c3d2e1b09f7a6c5d4e3f"
BASIC = base64.b64encode(b"ada:S3cr3tPass1").decode()
AZURE = base64.b64encode(random.Random(4).randbytes(64)).decode()
# A text with its credential between two marks, and the rule.
HANDED = {
    "aws_secret_access_key = ^wJalrXUtnFEMI/K7MDENG/bPxRfiCYABCDKEYz1^": "secret_assignment",
    "client_secret=^8f2d7a6b5c4e3f1a9d8c7b6a^": "secret_assignment",
    f"api_key = '^{KEY}^'": "secret_assignment",
    f'{{"apiKey": "^{KEY}^"}}': "secret_assignment",
    f"The API key: ^{KEY}^.": "secret_assignment",
    f"api_key\uff1a^{KEY}^": "secret_assignment",
    f"\u0130\u0130 api_key: ^{KEY}^": "secret_assignment",
    f"AccountName=cedar;AccountKey=^{AZURE}^;EndpointSuffix=core": "secret_assignment",
    f"https://api.cedar.dev/v1?api_key=^{KEY}^&page=2": "secret_assignment",
    f"Authorization: Basic ^{BASIC}^": "secret_assignment",
    f"-H 'Authorization: Bearer ^{KEY}^'": "secret_assignment",
    "DB_PASS=^Xk39dkqPz^": "password_assignment",
    "auth: {user: 'ada', pass: '^Xk39dkqPz^'}": "password_assignment",
    "curl -u admin:^S3cr3tPass1^ https://cedar.dev": "password_assignment",
    "curl -s --user 'admin:^S3cr3tPass1^' https://cedar.dev": "password_assignment",
    "sshpass -p '^S3cr3tPass1^' ssh ada@cedar.dev": "password_assignment",
    "sshpass -p^S3cr3tPass1^ ssh ada@cedar.dev": "password_assignment",
    "machine cedar.dev login ada password ^Xk39dkqPz^": "password_assignment",
    "CREATE ROLE ada PASSWORD '^hunter2hunter^'": "password_assignment",
    "password=^$ecr3tPass9^": "password_assignment",
    "password\uff1a^Xk39dkqPz^": "password_assignment",
    "if password == '^hunter2hunter^'": "password_assignment",
    "password == '^admin1847263^'": "password_assignment",
    "password=^pwd=hunter27x^": "password_assignment",
}
NOT_HANDED = [
    "/etc/passwd:root:x:0:0",
    "EOS_TOKEN = 'endoftext_100257'",
    "MAX_TOKEN = 128000_tokens",
    "NEXT_TOKEN=page2-of-results-10",
    "SECRET_KEY=projects/1/secrets/x2",
    "OLDPWD=home/alice2/work",
    "pwd=x86_64-linux-gnu",
    "password: required|min:8|max:64",
    "password: CVE-2024-12345",
    "password: ISO27001-compliant",
    "passphrase: BIP39-words",
    "password == 'admin1234567'",
    "password=$db2_password or $DB2PASS or $user2Password",
    "the tests pass=120/120, bypass=Xk39dkqPz",
    "password hunter2hunter, password XK39DKQP, password whatever",
    "password 'CVE-2024-12345', password\uff1aCVE-2024-12345",
    "curl -u user:password, curl -u $NAME:$WORD, sshpass -p <password>, docker run -u 1000:1000000",
    f"Authorization: Basic {base64.b64encode(b'user:password').decode()}, Authorization: Basic auth-needed1",
    "Authorization: Bearer access-token-2, Authorization: Bearer <token>",
    f"primary key: {KEY}, cache key={KEY}, token {KEY}",
]


@pytest.mark.parametrize("marked", HANDED, ids=range(len(HANDED)))
def test_however_a_secret_is_given_it_is_found_once(marked: str) -> None:
    """In code, an address, a connection string, a header, a command or .netrc: by one rule, the value and no more."""
    before, secret, after = marked.split("^")

    found = list(scan(Draft(text=before + secret + after)))

    assert found == [Found(HANDED[marked], "text", len(before), len(before) + len(secret))]


@pytest.mark.parametrize("text", NOT_HANDED, ids=range(len(NOT_HANDED)))
def test_words_and_numbers_in_the_place_of_a_secret_pass(text: str) -> None:
    """Names, paths, releases, rules of a form, variables, and what is given to other names."""
    assert list(scan(Draft(text=text))) == []


def test_what_has_a_form_is_known_by_it_alone() -> None:
    """Whatever name it is given to, so that who lets that rule pass need not name another."""
    token = REAL["github_pat"]

    assert list(scan(Draft(text=f"token: {token}"))) == [Found("github_pat", "text", 7, 47)]
    assert check(Draft(text=f"GITHUB_TOKEN={token}"), ["github_pat"]) == ("github_pat",)


@pytest.mark.parametrize("cut", ["\u200b", "\u00ad", "\x01", "\n", "\r\n", "\n    ", " \n", "\u2028", "\u200b\n\u2060"])
def test_a_credential_that_is_cut_in_two_is_found(cut: str) -> None:
    """By what nobody sees, or by a line's end; the place is that of the text as it was given."""
    token = REAL["github_pat"]
    text = f"Ada\u200b said:\nuse {token[:20]}{cut}{token[20:]} for\nthat"

    (found,) = scan(Draft(text=text))

    assert found.rule == "github_pat"
    assert text[found.start : found.end] == f"{token[:20]}{cut}{token[20:]}"


@pytest.mark.parametrize("cut", ["\u200b", "\x01", "\n"])
def test_a_credential_that_is_all_of_a_text_is_found_cut_in_two(cut: str) -> None:
    """With no other word in its lines, and nothing else in it that is unseen."""
    token = REAL["github_pat"]

    assert list(scan(Draft(text=f"{token[:6]}{cut}{token[6:]}"))) == [Found("github_pat", "text", 0, 40 + len(cut))]


@pytest.mark.parametrize(("side", "found"), [(5, False), (6, True), (34, True), (35, False)])
def test_six_characters_stand_on_either_side_of_a_cut(side: int, found: bool) -> None:
    """With less on one side nothing is found, however long the words are that the two halves stand in."""
    token = REAL["github_pat"]
    text = f"write:{token[:side]}\n{token[side:]}:thanks"

    assert list(scan(Draft(text=text))) == [Found("github_pat", "text", 6, 47)] * found


@pytest.mark.parametrize("cut", [" ", "\n\n", "\n- ", ", "])
def test_two_words_are_not_put_together(cut: str) -> None:
    """What a space, a paragraph or a list keeps apart is not one credential; nor is what a line barely cuts."""
    token = REAL["github_pat"]

    assert list(scan(Draft(text=f"use {token[:20]}{cut}{token[20:]}"))) == []
    assert list(scan(Draft(text=f"DISK\n{drawn(32, HEX)}"))) == []


def test_a_credential_in_two_lines_of_its_own_is_found_once() -> None:
    """As a private key is, whose lines are its own; and what stands whole beside a line's end."""
    text = f"{REAL['private_key']}\n{REAL['github_pat']}\nabcdefG1"

    assert sorted(each.rule for each in scan(Draft(text=text))) == ["github_pat", "private_key"]


def test_sorts_are_named_for_whatever_texts() -> None:
    """Each once, in order, without those that are allowed."""
    texts = ["plain", f"{REAL['github_pat']} {REAL['jwt']}", REAL["github_pat"]]

    assert sorts(texts) == ("github_pat", "jwt")
    assert sorts(texts, ["jwt"]) == ("github_pat",)
    check_text("name", None)
    with pytest.raises(RuleError, match="name, characters 1 to 40: github_pat"):
        check_text("name", REAL["github_pat"])


@pytest.mark.parametrize("text", ORDINARY, ids=range(len(ORDINARY)))
def test_what_notes_are_full_of_passes(text: str) -> None:
    """Hashes, ids, addresses, log lines, public keys, placeholders, and words that begin like a credential."""
    assert list(scan(Draft(text=text))) == []


def test_images_within_notes_pass() -> None:
    """A megabyte of them, as data within text."""
    for _ in range(200):
        image = base64.b64encode(CHANCE.randbytes(5000)).decode()
        assert list(scan(Draft(text=f"![chart](data:image/png;base64,{image})"))) == []


@pytest.mark.parametrize("field", ["text", "key", "source", "title", "place", "tags", "triggers"])
def test_every_text_of_a_draft_is_looked_at(field: str) -> None:
    """And the error names the field, the rule and the place, and nothing of the credential."""
    secret = REAL["gitlab_pat"]
    fields: dict[str, Any] = {"text": "a note"} | {field: (secret,) if field in {"tags", "triggers"} else secret}

    with pytest.raises(RuleError, match=f"{field}, characters 1 to 26: gitlab_pat") as refused:
        check(Draft(**fields))

    said = f"{refused.value.message} {refused.value.hint} {refused.value.wire()}"
    assert refused.value.rule == "secret"
    assert not any(secret[start : start + 8] in said for start in range(len(secret) - 8))


def test_what_is_all_small_or_all_large_letters_was_not_drawn() -> None:
    """It is a name of somebody's; a digit or a second sort of letters makes a credential of it."""
    small = f"ghp_{drawn(36, 'abcdefghijkmnopqrstuvwxyz')}"
    large = f"AKIA{drawn(16, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')}"

    assert list(scan(Draft(text=f"{small} {large} {small}:7"))) == []

    for text in (f"{small[:-1]}7", f"{small[:-1]}Q", f"{large[:-1]}7"):
        assert [(each.start, each.end) for each in scan(Draft(text=text))] == [(0, len(text))]


@pytest.mark.parametrize(("name", "secret"), [("API_KEY=", "1a2b3c4d" * 2), ("", "EXO" * 4 + "12345" * 4)])
def test_what_is_just_as_random_as_a_rule_asks_for_is_not_enough(name: str, secret: str) -> None:
    """Eight characters as often as each other are three bits each; with a ninth it is more."""
    more = f"{secret[:-1]}9"

    assert list(scan(Draft(text=name + secret))) == []

    assert [(each.start, each.end) for each in scan(Draft(text=name + more))] == [(len(name), len(name + more))]


def test_what_a_rule_says_must_be_in_a_credential_is() -> None:
    """Two digits, of one sort; with one it is a name."""
    name = "tss_abcdefghijklmnopqrstuvw1"

    assert list(scan(Draft(text=name))) == []

    assert list(scan(Draft(text=f"{name}2"))) == [Found("thunderstore_api_token", "text", 0, 29)]


def test_two_credentials_are_told_apart() -> None:
    """One after the other, each by its place and its rule."""
    with pytest.raises(RuleError) as refused:
        check(Draft(text=f"{REAL['gitlab_pat']} and {REAL['github_pat']}"))

    assert refused.value.message == (
        "secret: looks like a credential: text, characters 32 to 71: github_pat; text, characters 1 to 26: gitlab_pat"
    )


def test_what_is_allowed_passes_by_name() -> None:
    """One rule's findings and no other's; what found nothing is not said to have been passed over."""
    draft = Draft(text=f"{REAL['gitlab_pat']} and {REAL['github_pat']}")

    assert check(draft, ["gitlab_pat", "github_pat", "jwt"]) == ("github_pat", "gitlab_pat")
    with pytest.raises(RuleError, match=r"text, characters \d+ to \d+: github_pat$"):
        check(draft, ["gitlab_pat"])
    with pytest.raises(UsageError, match="no secret rule 'gitlab'"):
        check(draft, ["gitlab"])


def test_an_entry_names_as_many_as_it_can_hold() -> None:
    """Sixteen sorts of credential in one draft may pass; whoever has seventeen has a list of them."""
    tokens = [
        *(REAL[rule] for rule in REAL if rule not in {"private_key", "generic_credential_uri"}),
        f"dop_v1_{drawn(64, HEX)}",
        f"doo_v1_{drawn(64, HEX)}",
        f"dapi{drawn(32, HEX)}",
        f"glrt-{drawn(20)}",
    ]
    every = sorted(NAMES)

    assert len(check(Draft(text=" ".join(tokens[:16])), every)) == 16
    with pytest.raises(RuleError, match="at most 16 rules let something pass, not 17"):
        check(Draft(text=" ".join(tokens)), every)


def test_every_rule_has_a_name_that_an_entry_can_hold() -> None:
    """Letters and ``_``, at most 64, as the format has them."""
    assert len(CREDENTIALS) > 150
    assert all(re.fullmatch("[a-z_]{1,64}", name) for name in NAMES)


@pytest.mark.parametrize("sort", CREDENTIALS, ids=[sort.name for sort in CREDENTIALS])
def test_whatever_a_rule_describes_gets_as_far_as_its_pattern(sort: Credential) -> None:
    """The look at keywords first spares time and loses nothing: what a pattern takes has one of its keywords."""
    text = "".join(example(_parser.parse(sort.pattern, re.ASCII)))
    assert re.search(sort.pattern, text, re.ASCII)

    words = " ".join(word for word in text.split() if len(word) >= 10).lower()

    assert any(keyword in words for keyword in sort.keywords)


def example(parsed: Any) -> Iterator[str]:
    """A text that a pattern takes: as little as it must have, and the first of what it leaves open."""
    for name, what in parsed:
        match str(name):
            case "LITERAL":
                yield chr(what)
            case "ANY":
                yield "."
            case "IN":
                yield member(what)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, _, repeated = what
                yield "".join(example(repeated)) * least
            case "SUBPATTERN":
                yield from example(what[-1])
            case "BRANCH":
                yield from example(what[1][0])


def member(described: Any) -> str:
    """One of a set of characters."""
    match str(described[0][0]), described[0][1]:
        case "LITERAL", code:
            return chr(code)
        case "RANGE", (low, _):
            return chr(low)
        case "CATEGORY", category:
            return {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "0"}.get(str(category), "a")
        case _:
            return "!"


@given(text=st.text(min_size=1, max_size=400))
def test_every_place_is_within_its_text(text: str) -> None:
    """Whatever is said; and saying it twice finds it twice."""
    for found in scan(Draft(text=f"{text} {REAL['npm_access_token']} {text}")):
        assert 0 <= found.start < found.end <= 2 * len(text) + len(REAL["npm_access_token"]) + 2


@pytest.mark.parametrize("start", ["-----BEGIN PRIVATE ", "mongodb://a:", "https://a:b", "eyJa.eyJ", "sk-", "aA0."])
def test_a_long_text_made_against_it_is_scanned_to_its_end(start: str) -> None:
    """A hundred thousand characters of beginnings that never end: no pattern goes back and forth for ever."""
    assert list(scan(Draft(text=start * (100_000 // len(start))))) == []
