"""Hints lead to exactly one namespace, or to an error that says what to do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerstone.core import namespaces
from ledgerstone.core.namespaces import Match, ProjectHints, choose_remote, normalise_remote, resolve, unresolved
from ledgerstone.core.values import AliasOf
from ledgerstone.errors import NamespaceError, NotFoundError

SCHEMES = ("ssh", "git+ssh", "ssh+git", "git", "http", "https")
DEFAULT_PORTS = (22, 80, 443, 9418)
TOKEN = "hunter2"

hosts = st.one_of(
    st.from_regex(r"[a-z0-9_][a-z0-9_-]{0,8}(\.[a-z][a-z0-9-]{0,5}){0,2}", fullmatch=True),
    st.ip_addresses(v=4).map(str),
    st.integers(2**48, 2**128 - 1).map(lambda number: f"[{IPv6Address(number)}]"),
)
segments = st.from_regex(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,10}", fullmatch=True).filter(
    lambda segment: not segment.endswith(".git")
)
paths = st.lists(segments, min_size=1, max_size=4).map("/".join)
users = st.sampled_from(("", "git@", f"git:{TOKEN}@", f"a%40b:{TOKEN}@x@"))
tails = st.sampled_from(("", "/", ".git", ".git/", "//", ".git.git", "/.git"))


@dataclass(frozen=True)
class Ledger:
    """The namespaces and aliases that a caller may know of."""

    ids: tuple[str, ...] = ()
    remotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def exists(self, namespace_id: str) -> bool:
        """Look among the ids."""
        return namespace_id in self.ids

    def known_by(self, namespace_id: str) -> tuple[str, ...]:
        """Look among both."""
        every = (*self.remotes.items(), *self.paths.items())
        return tuple(name for name, namespaces in every if namespace_id in namespaces)

    def by_alias(self, kind: AliasOf, value: str) -> tuple[str, ...]:
        """Look among the remotes or the paths."""
        return (self.remotes if kind is AliasOf.REMOTE else self.paths).get(value, ())


EVERYTHING = ProjectHints(
    explicit="ns_explicit",
    binding="ns_binding",
    remotes=(("origin", "git@example.org:team/app.git"),),
    inside=("/src/app/web/ui", "/src/app/web"),
    paths=("/src/app", "/src"),
)
KNOWN = Ledger(
    ids=("ns_explicit", "ns_binding"),
    remotes={"example.org/team/app": ("ns_remote",)},
    paths={"/src/app/web": ("ns_inside",), "/src/app": ("ns_root",), "/src": ("ns_around",)},
)


@settings(deadline=None)
@given(host=hosts, path=paths, user=users, tail=tails, data=st.data())
def test_every_spelling_of_a_remote_meets(host: str, path: str, user: str, tail: str, data: st.DataObject) -> None:
    """Scheme, user, host case, default port, ``.git``, slashes, query and fragment make no difference."""
    scheme = data.draw(st.sampled_from(SCHEMES))
    port = data.draw(st.sampled_from(("", ":", *(f":{port}" for port in DEFAULT_PORTS))))
    query = data.draw(st.sampled_from(("", "?ref=main", "#readme", f"?token={TOKEN}#x@y")))

    as_url = normalise_remote(f"{scheme.upper()}://{user}{host.upper()}{port}/{path}{tail}{query}")
    as_scp = normalise_remote(f"git@{host.upper()}:{path}{tail}")

    assert as_url == as_scp == f"{host}/{path}"


@settings(deadline=None)
@given(host=hosts, path=paths, port=st.integers(1, 65535).filter(lambda port: port not in DEFAULT_PORTS))
def test_other_ports_are_kept(host: str, path: str, port: int) -> None:
    """A port that is nobody's default tells two servers on one host apart."""
    remote = normalise_remote(f"ssh://git@{host}:{port}/{path}")

    assert remote == f"{host}:{port}/{path}"


@settings(deadline=None)
@given(
    st.one_of(
        st.text(),
        st.builds("{}://{}/{}".format, st.sampled_from(SCHEMES), st.text(), st.text()),
        st.builds("{}:{}".format, st.text(), st.text(min_size=1)),
        st.builds("git@{}:{}".format, hosts, st.text(min_size=1)),
    ),
    st.sampled_from(SCHEMES),
)
@example("https://host/%2541%zz%00/@scope/a b?c#d", "ssh")
@example("git@host:a.git/.git//", "ssh")
@example("ssh://[0:0::1]:2222/x", "https")
def test_a_normalised_remote_gives_itself_again(url: str, scheme: str) -> None:
    """Behind any scheme a result reads as itself, and it never holds an @ or anything unprintable."""
    remote = normalise_remote(url)

    again = None if remote is None else normalise_remote(f"{scheme}://{remote}")

    assert again == remote
    assert remote is None or re.fullmatch(r"[!-?A-~]+", remote)


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("https://example.org/My%20Team/app", "example.org/My%20Team/app"),
        ("git@example.org:My Team/app", "example.org/My%20Team/app"),
        ("https://example.org/%74eam%2Fapp", "example.org/team/app"),
        ("https://example.org/café", "example.org/caf%C3%A9"),
        ("https://example.org/100%25", "example.org/100%25"),
        ("https://example.org/100%", "example.org/100%25"),
        ("https://example.org/@team/app", "example.org/%40team/app"),
    ],
)
def test_a_path_is_escaped_in_one_way(url: str, remote: str) -> None:
    """What was escaped without need is plain, what needs it is escaped, and case stays."""
    assert normalise_remote(url) == remote


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("ssh://git@[2001:DB8:0::1]:2222/app", "[2001:db8::1]:2222/app"),
        ("[2001:db8::1]:app", "[2001:db8::1]/app"),
        ("git@[2001:db8::1]:app", "[2001:db8::1]/app"),
        ("ssh://[::ffff:192.0.2.1]/app", "192.0.2.1/app"),
        ("[git@example.org:2222]:app", "example.org:2222/app"),
        ("git@[example.org:22]:app", "example.org/app"),
        ("ssh://example.org./app", "example.org/app"),
    ],
)
def test_bracketed_and_rooted_hosts_meet_the_plain_ones(url: str, remote: str) -> None:
    """IPv6 addresses have one spelling, brackets may carry a port, and a final dot says nothing."""
    assert normalise_remote(url) == remote


@pytest.mark.parametrize(
    ("local", "neighbour"),
    [
        ("file:///srv/app.git", "ssh://host/srv/app.git"),
        ("file:app.git", "files:app.git"),
        ("FILE:app.git", "git@file:app.git"),
        ("/srv/host:app", "srv-host:app"),
        ("../app", "up:app"),
        ("./host:app", "host:app"),
        ("host/app", "https://host/app"),
        ("~/app", "host:~/app"),
        ("~host:app", "host:~app"),
        (r"C:\src\app", "git@c:src/app"),
        ("C:/src/app", "cc:/src/app"),
        (r"\\server\app", "server:app"),
    ],
)
def test_a_local_path_counts_as_none(local: str, neighbour: str) -> None:
    """file: URLs and paths of every kind name no host; beside each stands a spelling that does."""
    assert normalise_remote(local) is None
    assert normalise_remote(neighbour) is not None


@pytest.mark.parametrize(
    ("url", "neighbour"),
    [
        ("", "host:path"),
        ("https://host", "https://host/path"),
        ("https://host/.git", "https://host/x.git"),
        ("https:///path", "https://host/path"),
        ("https:/host/path", "https://host/path"),
        ("svn://host/path", "git://host/path"),
        ("1ssh://host/path", "ssh://host/path"),
        ("ext::sh -c path", "ext:sh -c path"),
        ("ssh://host:path", "ssh://host/path"),
        ("ssh://host:0/path", "ssh://host:1/path"),
        ("ssh://host:65536/path", "ssh://host:65535/path"),
        ("ssh://-oProxyCommand/path", "ssh://oProxyCommand/path"),
        ("ssh://ho%73t/path", "ssh://host/path"),
        ("ssh://\u212aost/path", "ssh://kost/path"),
        ("ssh://[::g]/path", "ssh://[::f]/path"),
        ("ssh://[1:2]/path", "ssh://[1::2]/path"),
        ("https://host/a/../path", "https://host/a/path"),
        ("https://host/a/%2e%2e/path", "https://host/a/..path"),
        ("https://host/a/..git", "https://host/a/.x.git"),
        ("https://host/a\tpath", "https://host/a%09path"),
        (f"user:{TOKEN}@host:path", f"https://user:{TOKEN}@host/path"),
        (f"https://host/{'p' * 1020}", f"https://host/{'p' * 1019}"),
    ],
)
def test_what_cannot_be_parsed_counts_as_none(url: str, neighbour: str) -> None:
    """A botched, foreign, deceptive or oversized remote is no remote; its nearest sound spelling is one."""
    assert normalise_remote(url) is None
    assert normalise_remote(neighbour) is not None


def test_origin_wins_over_other_remotes() -> None:
    """``origin`` says which project a checkout belongs to, wherever it stands in the list."""
    remotes = (("fork", "git@example.org:me/app.git"), ("origin", "https://example.org/team/app"))

    assert choose_remote(remotes) == "example.org/team/app"


def test_a_sole_remote_needs_no_name() -> None:
    """Paths do not compete, and two spellings of one remote are one."""
    remotes = (
        ("origin", "/srv/app.git"),
        ("ssh", "git@example.org:team/app.git"),
        ("web", "https://example.org/team/app"),
    )

    assert choose_remote(remotes) == "example.org/team/app"


def test_path_remotes_alone_are_no_remote() -> None:
    """A copy of a local repository names no project that another place could share."""
    assert choose_remote((("origin", "file:///srv/app.git"), ("backup", "../app"))) is None


def test_several_remotes_without_origin_are_ambiguous() -> None:
    """The refusal lists names and remotes, shows no credential and passes on no control character."""
    remotes = (("a\x1b[2J", f"https://me:{TOKEN}@example.org/a"), ("b", "git@example.org:b"))

    with pytest.raises(NamespaceError) as refusal:
        choose_remote(remotes)

    assert r"a\x1b[2J (example.org/a), b (example.org/b)" in refusal.value.message
    assert TOKEN not in refusal.value.message
    assert "origin" in refusal.value.hint


def test_a_long_list_of_choices_is_cut_with_a_count() -> None:
    """However many remotes a configuration holds, the refusal stays readable."""
    remotes = tuple((f"r{n}", f"git@example.org:{n}") for n in range(namespaces.MAX_LISTED + 3))

    for count, end in ((11, " and 3 more"), (9, " and 1 more"), (8, "")):
        with pytest.raises(NamespaceError, match=rf"r7 \(example.org/7\){end}$"):
            choose_remote(remotes[:count])


def test_hints_never_show_their_raw_remotes() -> None:
    """Hints end up in logs; a remote's password must not."""
    hints = ProjectHints(remotes=(("origin", f"https://me:{TOKEN}@example.org/a"),), paths=("/src/a",))

    assert TOKEN not in repr(hints)
    assert "/src/a" in repr(hints)


def test_the_most_explicit_hint_wins() -> None:
    """Taking the winning hint away uncovers the next: id, binding, inner path, remote, root, surroundings."""
    hints = [
        EVERYTHING,
        ProjectHints(None, "ns_binding", EVERYTHING.remotes, EVERYTHING.paths, None, EVERYTHING.inside),
        ProjectHints(None, None, EVERYTHING.remotes, EVERYTHING.paths, None, EVERYTHING.inside),
        ProjectHints(None, None, EVERYTHING.remotes, EVERYTHING.paths),
        ProjectHints(paths=EVERYTHING.paths),
        ProjectHints(paths=EVERYTHING.paths[1:]),
    ]

    matches = [resolve(hint, KNOWN) for hint in hints]

    assert matches == [
        Match("ns_explicit", "explicit"),
        Match("ns_binding", "binding"),
        Match("ns_inside", "alias"),
        Match("ns_remote", "remote"),
        Match("ns_root", "alias"),
        Match("ns_around", "alias"),
    ]


@pytest.mark.parametrize("hints", [ProjectHints(explicit="ns_gone"), ProjectHints(binding="ns_gone", paths=("/src",))])
def test_an_unknown_id_is_refused_as_a_hidden_one(hints: ProjectHints) -> None:
    """An id that a caller or its host named is never replaced by another hint's namespace."""
    with pytest.raises(NotFoundError) as refusal:
        resolve(hints, KNOWN)

    assert refusal.value.wire() == namespaces.unknown("ns_gone", hint=namespaces.NAMED_HINT).wire()


def test_several_namespaces_behind_one_alias_are_listed() -> None:
    """Nothing is guessed: the refusal names the choices, and naming one of them is accepted."""
    paths = {"/src/app": ("ns_a", "ns_b"), **{f"/old\x1b/{n}": ("ns_b",) for n in range(4)}}
    ledger = Ledger(ids=("ns_b",), remotes={"example.org/a": ("ns_a",)}, paths=paths)
    old = r"/old\\x1b/0, /old\\x1b/1, /old\\x1b/2, \.\.\."

    with pytest.raises(NamespaceError, match=rf"path /src/app: ns_a \(example\.org/a\), ns_b \({old}\)$") as refusal:
        resolve(ProjectHints(paths=("/src/app",)), ledger)

    assert "namespaces use" in refusal.value.hint
    assert resolve(ProjectHints("ns_b", paths=("/src/app",)), ledger) == Match("ns_b", "explicit")


def test_many_namespaces_behind_one_alias_are_cut_with_a_count() -> None:
    """Nor does one that is known by nothing else go without a word."""
    ledger = Ledger(paths={"/src/app": tuple(f"ns_{n}" for n in range(namespaces.MAX_LISTED + 3))})

    with pytest.raises(NamespaceError, match=r"ns_0 \(by nothing else\), .*ns_7 \(by nothing else\) and 3 more$"):
        resolve(ProjectHints(paths=("/src/app",)), ledger)


@pytest.mark.parametrize(
    "remotes",
    [
        (("a", "git@example.org:a"), ("b", "git@example.org:b")),
        (("origin", "git@example.org:shared"),),
    ],
)
def test_an_alias_of_the_root_settles_ambiguous_remotes(remotes: tuple[tuple[str, str], ...]) -> None:
    """What remotes leave open an explicit act at the root decides; one further out does not."""
    shared = {"example.org/shared": ("ns_a", "ns_b")}
    hints = ProjectHints(remotes=remotes, paths=("/src/app", "/src"))

    settled = resolve(hints, Ledger(remotes=shared, paths={"/src/app": ("ns_b",)}))

    assert settled == Match("ns_b", "alias")
    with pytest.raises(NamespaceError, match="several"):
        resolve(hints, Ledger(remotes=shared, paths={"/src": ("ns_b",)}))


@pytest.mark.parametrize(
    ("hints", "message"),
    [
        (ProjectHints(), "no project is known by any hint"),
        (ProjectHints(reason="no repository at /src/app or above"), "no repository at /src/app or above"),
        (ProjectHints(remotes=(("origin", "git@example.org:x"),)), "no project is known by example.org/x"),
    ],
)
def test_unresolved_says_why_and_what_to_run(hints: ProjectHints, message: str) -> None:
    """Nothing slides to another scope: the error names what was looked for and the command that helps."""
    refusal = unresolved(hints)

    assert resolve(hints, KNOWN) is None
    assert (refusal.message, refusal.hint) == (message, "run: ledgerstone namespaces use --new")
