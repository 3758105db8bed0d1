"""The commands that set up, prove and administer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click

from ledgerstone.core.values import ACCEPTED_CODES, MAX_LIST, Act, Scope
from ledgerstone.entrypoints import host, projects
from ledgerstone.entrypoints.frame import FINDINGS, MCP_HINT, YES, Door, moment, verb
from ledgerstone.errors import LedgerstoneError, NamespaceError, UsageError

if TYPE_CHECKING:
    from ledgerstone.core.values import Finding, Report

HOSTS: Final = ("claude-code", "codex", "cursor", "vscode")


def own_version() -> str:
    """The version of this program."""
    from importlib.metadata import version

    return version("ledgerstone")


@click.command
@click.argument("program", type=click.Choice(HOSTS), metavar="[HOST]", required=False)
@click.option("--show", is_flag=True, help="With a host: print what would be written.")
@click.option("--remove", is_flag=True, help="With a host: take our entry out again.")
@verb
def init(door: Door, program: str | None, *, show: bool, remove: bool) -> None:
    """Make the store and its key, or tell a host of the server.

    Hosts: claude-code, codex, cursor, vscode. Done again, it changes nothing. A host's file keeps all that is not
    ours; --remove takes out our entry alone.
    """
    if program is not None:
        _tell_host(door, program, show=show, remove=remove)
        return
    if show or remove:
        raise UsageError("--show and --remove need a host", hint=f"one of: {', '.join(HOSTS)}")
    settings = door.settings()
    made = not settings.store.exists()
    with door.memory(create=True) as memory:
        status, bound = memory.status(), memory.bound()
        project, found_by = projects.found(memory, bound)
    ready = project is not None or found_by.startswith(projects.NEW)
    follows = 'ledgerstone remember "..."' if ready else "ledgerstone namespaces use --new"
    answer = {
        "store": str(settings.store),
        "made": made,
        "key": status["signer"],
        "key_file": str(settings.key_file),
        "principal": settings.principal,
        "project": project,
        "found_by": found_by,
        "next": follows,
    }
    rows = [
        ("store", str(settings.store), "made" if made else "was there"),
        ("key", str(status["signer"]), str(settings.key_file)),
        ("principal", settings.principal),
        ("project", project or "none yet", found_by if project else ""),
        ("next", follows),
    ]
    door.answer(answer, lambda: _columns(rows))
    if project is None:
        # A whole sentence, which ends in what comes next.
        door.say(f"project {found_by.removesuffix(f'; run: {follows}')}")
    if made:
        door.say("back up the key file: without it nothing can be written, or read but by its public half")


def _tell_host(door: Door, program: str, *, show: bool, remove: bool) -> None:
    from ledgerstone.entrypoints import cli_hosts

    change = cli_hosts.plan(program, door.settings(), remove=remove)
    if not show:
        cli_hosts.carry_out(change)
    answer: dict[str, Any] = {
        "host": program,
        "file": str(change.path),
        "done": "shown" if show else change.what,
        **({"text": change.after} if show else {}),
    }
    # The host would start a server that cannot be.
    if not remove and find_spec("mcp") is None:
        answer["notices"] = [f"the MCP SDK is not installed, so the host cannot start the server; {MCP_HINT}"]
    if show:
        would = "holds:" if change.before == change.after else "would hold:"
        if change.after is None:
            would = "is not there" if change.before is None else "would go"
        door.say(f"{change.path} {would}")
        door.answer(answer, (change.after or "").rstrip("\n"))
    else:
        door.answer(answer, f"{change.path}: {change.what}")
    for notice in answer.get("notices", ()):
        door.say(notice)
    if show:
        return
    if change.what in {"written", "updated"}:
        door.say(cli_hosts.HOSTS[program].follows)


@click.command
@verb
@click.option("--full", is_flag=True, help="Replay everything, also what was verified here before.")
@click.option("--accept", is_flag=True, help="Take a sound store as it is, though it lacks what was seen here.")
@click.option("--expected", metavar="HEAD|FILE", help="What the store must contain: a head's id, or checkpoints.")
@YES
def verify(door: Door, *, full: bool, accept: bool, expected: str | None, yes: bool) -> None:
    """Replay history and report every fault.

    By the rules that admitted it: what is new since the last time, and a sample of what is older. Exits 4 when there
    is a fault.
    """
    from ledgerstone.entrypoints import cli_prove

    head = None if expected is None else cli_prove.expected(expected)
    told: list[Finding] = []

    def tell(finding: Finding) -> None:
        told.append(finding)
        if not door.json:
            click.echo(_finding(finding))

    with door.memory(check=False) as memory, door.progress("commits") as progress:
        asked = accept and head is None and door.terminal and not yes
        report = memory.verify(
            full=full or asked, accept=accept and not asked, expected=head, progress=progress, found=tell
        )
        # Nobody is asked about a store that is not sound: it is not taken.
        if asked and ACCEPTED_CODES.issuperset(finding.code for finding in report.findings):
            for finding in report.findings[len(told) :]:
                tell(finding)
            above = ", and give up what is named above" if told else ""
            door.confirm(f"Take this store as it is{above}?", yes=False)
            told.clear()
            report = memory.verify(accept=True, progress=progress, found=tell)
        now = memory.status() if accept and report.ok else None
    _report(door, report, told=len(told))
    if now is not None:
        # That an unknown store is taken, and what is given up, is put on record in the store chain.
        more = now["sequence"] > report.heads[now["store"]][0]
        nothing = "it lacks nothing that was seen here: nothing was given up"
        door.say("taken as it is; from now on it is held to that" if more else nothing)
    elif head is not None:
        door.say("it contains what was expected")


@click.command
@verb
def rebuild(door: Door) -> None:
    """Write anew whatever is derived from history.

    The word index, standing, links. What others put into the schema (statistics, views, triggers, tables) is taken out.
    No head moves; a damaged history is refused. Vectors are dropped: ledgerstone index makes them anew.
    """
    from ledgerstone.entrypoints import shown

    with door.memory(check=False) as memory:
        report = memory.rebuild()
    _report(door, report, "rebuilt from ")
    for what in report.mended:
        door.say(f"put right: {shown.one_line(what)}")
    if host.words_alone(door.settings()) is None:
        door.say("what was indexed by meaning is indexed anew by: ledgerstone index")


def _finding(finding: Finding) -> str:
    from ledgerstone.entrypoints import shown

    where = f"{finding.namespace} {'' if finding.sequence is None else finding.sequence}".strip()
    return f"{finding.code:9} {where + ': ' if where else ''}{shown.one_line(finding.message)}"


def _report(door: Door, report: Report, verb_: str = "", *, told: int = 0) -> None:
    """Answer with a report; the first ``told`` of its findings were shown when they were made."""
    from ledgerstone.entrypoints import shown, wire

    counts = (
        shown.count(report.namespaces, "namespace"),
        shown.count(report.commits, "commit"),
        shown.count(report.entries, "entry", "entries"),
    )
    size = f"{verb_}{', '.join(counts)}"
    faults = shown.count(len(report.findings), "fault") if report.findings else "no fault"

    def text() -> str:
        return "\n".join([*map(_finding, report.findings[told:]), f"{size}: {faults}"])

    door.answer(wire.report(report), text)
    door.say(_extent(report))
    if not report.ok:
        door.say(report.hint or "")
        click.get_current_context().exit(FINDINGS)


def _extent(report: Report) -> str:
    """How much of the store was looked at."""
    from ledgerstone.entrypoints import shown

    if report.since is None:
        return "" if report.reason is None else f"everything was replayed: {report.reason}"
    new = report.commits - report.older
    replayed = (
        f"{shown.count(new, 'commit')} since the last time, replayed" if new else "nothing new since the last time"
    )
    receipts = f"; {report.receipts_checked} of {shown.count(report.receipts, 'receipt')}" if report.receipts else ""
    return (
        f"{replayed}; looked at {report.sampled} of {shown.count(report.older, 'older commit')}, drawn by chance"
        f"{receipts}; all of them: verify --full"
    )


@click.command
@click.argument("target", metavar="[ID]", required=False)
@click.option("--limit", type=click.IntRange(1, MAX_LIST * 10), default=50, show_default=True, help="How many.")
@click.option("--before", callback=moment, metavar="TIME", help="Only what came before this time.")
@verb
def audit(door: Door, target: str | None, limit: int, before: int | None) -> None:
    """Show who did what and when, newest first.

    Of one memory, or of all that may be read, refusals of your own included.
    """
    from ledgerstone.entrypoints import shown, wire

    with door.memory() as memory:
        events = memory.audit(target=target, limit=limit, before=before)
    # A promotion and the record that comes by it are one act.
    told = [event for event in events if event.operation != "promotion"]
    door.answer(wire.events(events), lambda: shown.events(told, door.width))
    if len(events) == limit:
        door.say(f"the newest {limit}; more by --limit, older ones by --before")


@click.group(invoke_without_command=True)
@verb
def namespaces(door: Door) -> None:
    """List namespaces, or bind this place to a project."""
    if click.get_current_context().invoked_subcommand is not None:
        return
    with door.memory() as memory:
        found, bound = memory.namespaces(), memory.bound()
    here = {name for name in bound.values() if isinstance(name, str)} | set(bound.get(Scope.SHARED.value, ()))

    def text() -> str:
        from ledgerstone.entrypoints import shown

        return "\n\n".join(
            f"{click.style(each['namespace'], bold=True)}  {shown.dim(_census(each, here))}\n"
            + "\n".join(f"{shown.MARGIN}{shown.one_line(name)}" for name in _names(each))
            for each in found
        )

    door.answer({"namespaces": list(found), "bound": bound}, text)
    for scope, problem in bound.items():
        if scope in set(Scope) and isinstance(problem, str) and problem not in {each["namespace"] for each in found}:
            door.say(f"{scope} {problem}")


def _census(namespace: Mapping[str, Any], here: Iterable[str]) -> str:
    counts = [f"{namespace['current']} current of {namespace['records']}"]
    if namespace["open"]:
        counts.append(f"{namespace['open']} open")
    if namespace.get("isolated"):
        counts.append("isolated")
    if namespace["namespace"] in here:
        counts.append("in sight here" if namespace["scope"] == Scope.SHARED.value else "bound here")
    return " · ".join([namespace["scope"], *counts])


def _names(namespace: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(filter(None, [namespace["name"], *namespace["aliases"]])))


@namespaces.command
@click.argument("namespace", metavar="[ID]", required=False)
@click.option("--new", is_flag=True, help="Make a new project for this place.")
@verb
def use(door: Door, namespace: str | None, *, new: bool) -> None:
    """Bind this directory to a project, by its id or a new one.

    With an id it moves there from the project that it belonged to, and says which; --new refuses where it belongs to
    one.
    """
    if new == (namespace is not None):
        raise UsageError("namespaces use: an id or --new", hint="the known ones: ledgerstone namespaces")
    settings = door.settings()
    if settings.place is None:
        raise NamespaceError(f"no directory to bind: {settings.no_place}", hint="run it in the project's directory")
    with door.memory() as memory:
        before = memory.bound().get(Scope.PROJECT.value)
        bound = memory.use_project(namespace)
    door.answer({"namespace": bound}, bound)
    if before == bound:
        door.say("this place belongs to that project, as before")
    elif str(before).startswith("ns_"):
        door.say(f"this place now belongs to that project; back to the one before: ledgerstone namespaces use {before}")
    else:
        door.say("this place now belongs to that project")


@namespaces.command
@click.option("--shared", metavar="NAME", required=True, help="Reached by grants on it alone.")
@YES
@verb
def create(door: Door, shared: str, *, yes: bool) -> None:
    """Make a namespace that several may be granted; prints its id.

    You may read, write and forget there; whoever else may, says: ledgerstone grants add WHO ACT --namespace ID
    """
    with door.memory() as memory:
        made = door.confirmed(f"Make the shared namespace {shared}?", partial(memory.share, shared), yes=yes)
    door.answer({"namespace": made, "shared": shared}, made)


@namespaces.command
@click.argument("namespace", metavar="ID")
@click.argument("state", type=click.Choice(["on", "off"]))
@YES
@verb
def isolate(door: Door, namespace: str, state: str, *, yes: bool) -> None:
    """Let a project keep to itself, or end that.

    No read there shows what is of user, global or shared scope.
    """
    with door.memory() as memory:
        turn = partial(memory.isolate, namespace, isolated=state == "on")
        door.confirmed(f"Turn the isolation of {namespace} {state}?", turn, yes=yes)
    door.answer({"namespace": namespace, "isolated": state == "on"}, namespace)
    if state == "on":
        door.say(
            "where it is bound, nothing of user, global or shared is shown; what is written there is kept all the same"
        )
    else:
        door.say("where it is bound, user, global and shared are shown again")


@namespaces.command
@click.argument("namespace", metavar="ID")
@click.option("--remote", metavar="URL", help="A repository's remote.")
@click.option("--path", metavar="PATH", help="A directory; its absolute path is kept.")
@YES
@verb
def alias(door: Door, namespace: str, remote: str | None, path: str | None, *, yes: bool) -> None:
    """Let a remote or a path suggest a project from now on."""
    if (remote is None) == (path is None):
        raise UsageError("namespaces alias: --remote or --path, one of the two")
    real = None if path is None else os.path.realpath(path)
    with door.memory() as memory:
        lead = partial(memory.alias, namespace, remote=remote, path=real)
        door.confirmed(f"Let {remote or real} lead to {namespace}?", lead, yes=yes)
    door.answer({"namespace": namespace, **({"remote": remote} if real is None else {"path": real})}, namespace)


@namespaces.command
@click.argument("namespace", metavar="ID")
@click.argument("value", metavar="REMOTE|PATH")
@YES
@verb
def detach(door: Door, namespace: str, value: str, *, yes: bool) -> None:
    """End the aliases of a project that are this remote or path."""
    real = os.path.realpath(value)
    with door.memory() as memory:
        known = {name for each in memory.namespaces() if each["namespace"] == namespace for name in each["aliases"]}
        value = real if real in known and value not in known else value
        door.confirmed(f"Take {value} from {namespace}?", partial(memory.detach, namespace, value), yes=yes)
    door.answer({"namespace": namespace, "detached": value}, namespace)


@click.group(invoke_without_command=True)
@click.option("--principal", help="Those of somebody else, which takes admin.")
@click.option("--all", "everyone", is_flag=True, help="Those of everyone, which takes admin.")
@verb
def grants(door: Door, principal: str | None, *, everyone: bool) -> None:
    """List what is granted, or add or revoke a grant."""
    if click.get_current_context().invoked_subcommand is not None:
        return
    with door.memory() as memory:
        found = memory.grants(principal, everyone=everyone)

    from ledgerstone.entrypoints import shown

    order = sorted(found, key=lambda grant: (str(grant["principal"]), _place_of_grant(grant)))
    listed = [{**grant, "expires": _time(grant["expires"])} for grant in order]
    rows = [
        (
            str(grant["grant"]),
            f"{grant['act']:<8}{grant['scope'] or grant['namespace']}",
            _beside(grant, whose=everyone),
        )
        for grant in listed
    ]
    door.answer(
        {"grants": [{name: value for name, value in grant.items() if value is not None} for grant in listed]},
        lambda: shown.columns(rows),
    )
    if principal is None and not everyone:
        door.say("yours alone; those of everyone: ledgerstone grants --all")


def _beside(grant: Mapping[str, Any], *, whose: bool) -> str:
    """Whose a grant is, if that is to be told, and until when it stands."""
    from ledgerstone.entrypoints import shown

    who = shown.one_line(str(grant["principal"])) if whose else ""
    until = f"until {grant['expires']}" if grant["expires"] else ""
    return shown.STEP.join(filter(None, (who, until)))


def _place_of_grant(grant: Mapping[str, Any]) -> tuple[int, str, int]:
    """By scope, then by act, in the order in which both are told; what is on one namespace comes last."""
    scopes, acts = [each.value for each in Scope], [each.value for each in Act]
    scope = len(scopes) if grant["scope"] is None else scopes.index(grant["scope"])
    return scope, grant["namespace"] or "", acts.index(grant["act"])


@grants.command
@click.argument("principal")
@click.argument("act", type=click.Choice([act.value for act in Act]))
@click.option("--scope", type=click.Choice([scope.value for scope in Scope]), help="All its namespaces of a scope.")
@click.option("--namespace", metavar="ID", help="One namespace.")
@click.option("--expires", callback=moment, metavar="TIME", help="Until when.")
@YES
@verb
def add(
    door: Door, principal: str, act: str, scope: str | None, namespace: str | None, expires: int | None, *, yes: bool
) -> None:
    """Let a principal act in its namespaces of a scope, or in one."""
    with door.memory() as memory:
        give = partial(
            memory.grant,
            principal,
            Act(act),
            scope=None if scope is None else Scope(scope),
            namespace=namespace,
            expires=expires,
        )
        grant = door.confirmed(f"Let {principal} {act} in {namespace or scope}?", give, yes=yes)
    door.answer({"grant": grant}, grant)


@grants.command
@click.argument("grant", metavar="GRANT")
@YES
@verb
def revoke(door: Door, grant: str, *, yes: bool) -> None:
    """End a grant; what was done under it stands."""
    with door.memory() as memory:
        door.confirmed(f"End {grant}?", partial(memory.revoke, grant), yes=yes)
    door.answer({"grant": grant, "revoked": True}, grant)


@click.group(invoke_without_command=True)
@verb
def keys(door: Door) -> None:
    """Show the key that signs, or move it.

    Its private half is never shown.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    settings = door.settings()

    from ledgerstone.keys import WAITS, describe, waiting

    found = describe(host.keyring(settings))
    signs, retired, notices = _in_force(door, settings)
    ended = {key["key"]: f"retired, store commit {key['sequence']}" for key in retired}
    here = set()
    rows = []
    for key in found:
        word = ended.get(key["key"], "does not sign" if key["signs"] else "only checks")
        key["signs"] = key["signs"] and signs in {None, key["key"]}
        here.add(key["key"])
        rows.append((str(key["key"]), str(key["public"]), "signs" if key["signs"] else word))
    rows += [(key["key"], key["public"], ended[key["key"]]) for key in retired if key["key"] not in here]
    if signs and signs not in here:
        notices.append(f"{signs} signs the store at {settings.store}")
    follows = waiting(settings.key_file)
    if follows is not None:
        notices.append(WAITS.format(follows))
    answer = {
        "keys": found,
        **({"retired": retired} if retired else {}),
        "file": str(settings.key_file),
        **({"notices": notices} if notices else {}),
    }
    door.answer(answer, lambda: _columns(rows))
    for line in (str(settings.key_file), *notices):
        door.say(line)


def _in_force(door: Door, settings: host.Settings) -> tuple[str | None, list[dict[str, Any]], list[str]]:
    """Which key signs the store that is here, which did before, and why that is not known; None without a store."""
    if not settings.store.exists():
        return None, [], []
    try:
        with door.memory() as memory:
            status = memory.status()
            return str(status["signer"]), status["retired"], []
    except LedgerstoneError as error:
        return "", [], [f"the store at {settings.store}: {error.message}", error.hint]


@contextmanager
def _sdk() -> Iterator[None]:
    """Say how to install the MCP SDK, an extra, where an import misses it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"anyio", "mcp", "mcp_types", "pydantic"}:
            raise
        raise UsageError("the MCP SDK is not installed", hint=MCP_HINT) from None


@click.command
@click.option(
    "--below-floor-bytes",
    metavar="BYTES",
    help="What a recall may give of what lies below the trust floor, in a section of its own.  [default: 0]",
)
@click.pass_obj
def mcp(door: Door, below_floor_bytes: str | None) -> None:
    """Serve MCP on standard input and output."""
    with _sdk():
        from ledgerstone.entrypoints.mcp import serve
    if door.terminal:
        door.say("serving MCP on standard input and output: this is for a host to start. Ctrl-C ends it")
    serve({**door.flags, "below_floor_bytes": below_floor_bytes})


@click.command
@verb
def demo(door: Door) -> None:
    """Watch it work, on a store of its own.

    Remember, restart, recall, verify, and notice a flipped byte. Leaves nothing behind.
    """
    with _sdk():
        from ledgerstone.entrypoints.demo import run
    run(door)


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@verb
def completion(door: Door, shell: str) -> None:
    """Print what makes a shell complete our commands.

    Put it where your shell looks: eval "$(ledgerstone completion bash)"
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:  # pragma: no cover - the three above are Click's own
        raise UsageError(f"no completion for {shell}")
    script = found(click.get_current_context().find_root().command, {}, "ledgerstone", "_LEDGERSTONE_COMPLETE").source()
    door.answer({"shell": shell, "script": script}, script.rstrip("\n"))


def _columns(rows: Iterable[tuple[str, ...]]) -> str:
    from ledgerstone.entrypoints.shown import columns

    return columns(rows)


def _time(microseconds: int | None) -> str | None:
    from ledgerstone.core.values import time_text

    return None if microseconds is None else time_text(microseconds)


COMMANDS: Final = (init, verify, rebuild, audit, namespaces, grants, keys, mcp, demo, completion)
