"""The command line: the group, and the verbs of every day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import click

from ledgerstone.core.values import (
    MAX_KEY_BYTES,
    MAX_LIST,
    MAX_TAG_BYTES,
    TRUST_OF_WORD,
    Draft,
    Kind,
    Lane,
    Mode,
    Origin,
    Policy,
    Retention,
    Scope,
    Trust,
)
from ledgerstone.entrypoints import (
    cli_admin,
    cli_curate,
    cli_doctor,
    cli_erase,
    cli_move,
    cli_prove,
    cli_receipts,
    host,
)
from ledgerstone.entrypoints.frame import (
    ALLOW_SECRET,
    HELP,
    IDEMPOTENCY_KEY,
    RECEIPT,
    Door,
    Program,
    given_text,
    moment,
    verb,
    written,
)
from ledgerstone.errors import UsageError

if TYPE_CHECKING:
    from ledgerstone.core.values import Page, Record
    from ledgerstone.memory import Memory

# Where a write may go without the id of a namespace.
WRITABLE = [scope.value for scope in (Scope.SESSION, Scope.PROJECT, Scope.USER, Scope.GLOBAL)]


def _choice(words: Iterable[StrEnum], *but: str) -> click.Choice[str]:
    """One of some words."""
    return click.Choice([word.value for word in words if word.value not in but])


class Ledgerstone(Program):
    """The program, its commands in the order of their use."""

    sections: ClassVar = {
        "Remember and recall": ("remember", "recall", "get", "list", "history"),
        "Correct": ("close", "retract"),
        "Tend": ("compact", "promote", "index"),
        "Erase": ("forget", "expire"),
        "Prove": ("verify", "audit", "receipts", "explain", "rebuild", "checkpoint", "prove", "verify-proof"),
        "Move": ("backup", "restore", "export", "import"),
        "Set up": ("init", "namespaces", "grants", "keys", "doctor", "completion"),
        "Serve and show": ("mcp", "demo"),
    }


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:  # noqa: FBT001 - Click passes it so
    if asked and not ctx.resilient_parsing:
        click.echo(f"ledgerstone {cli_admin.own_version()}")
        ctx.exit()


@click.group(cls=Ledgerstone, context_settings=HELP, invoke_without_command=True)
@click.option("--store", metavar="PATH", help="The store's file.")
@click.option("--key-file", metavar="PATH", help="The key file.")
@click.option("--read-only", is_flag=True, help="Write nothing. A pinned public key suffices.")
@click.option("--project", metavar="ID", help="The project's namespace, whatever the directory says.")
@click.option("--session", metavar="NAME", help="The session that is going on.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def main(ctx: click.Context, /, *, read_only: bool, **flags: str | None) -> None:
    """Durable, verifiable memory for AI agents: exact text, bounded recall, proof of both.

    Answers go to standard output, everything said beside them to standard error. Begin with: ledgerstone init
    """
    if host.without_colour():
        ctx.color = False
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    ctx.obj = Door(flags={**flags, "read_only": "yes" if read_only else None}, terminal=host.at_terminal())


@main.command
@click.argument("text", metavar="TEXT|-")
@click.option("--kind", type=_choice(Kind), help="What it is.  [default: as what it replaces, else note]")
@click.option("--scope", type=click.Choice(WRITABLE), help="Where it applies.  [default: the project]")
@click.option("--namespace", metavar="ID", help="One namespace by its id, in place of a scope.")
@click.option("--key", help="A name for what it is about; the next text under it replaces this one.")
@click.option("--replaces", metavar="ADDRESS", help="The version that must still be current, else it is a conflict.")
@click.option("--source-of", "sources", multiple=True, metavar="ADDRESS", help="A record this one rests on. (many)")
@click.option("--covers", multiple=True, metavar="ADDRESS", help="A source that this summary condenses. (many)")
@click.option("--due", callback=moment, metavar="TIME", help="When a task or reminder falls due.")
@click.option("--expires", callback=moment, metavar="TIME", help="When it leaves recall by itself.")
@click.option("--valid-from", callback=moment, metavar="TIME", help="Since when it is true.")
@click.option("--valid-until", callback=moment, metavar="TIME", help="Until when it is true.")
@click.option(
    "--trigger",
    "triggers",
    multiple=True,
    help="Words of a query that bring a reminder to mind. (many)",
)
@click.option(
    "--retention",
    type=_choice(Retention),
    default="long_term",
    show_default=True,
    help="How long it is meant to live; nothing goes by itself.",
)
@click.option("--tag", "tags", multiple=True, help="A tag. (many)")
@click.option("--title", help="The title of where it comes from.")
@click.option("--source", metavar="URL|FILE|NAME", help="Where it comes from: a page, a file, a conversation.")
@click.option("--place", help="The place within that source.")
@click.option("--external", is_flag=True, help="It passes on what somebody else wrote; this only lowers its trust.")
@RECEIPT
@ALLOW_SECRET
@IDEMPOTENCY_KEY
@verb
def remember(
    door: Door,
    /,
    text: str,
    kind: str | None,
    scope: str | None,
    namespace: str | None,
    receipt: str | None,
    **options: Any,
) -> None:
    """Keep a text exactly as given; prints its address.

    With - the text is standard input, byte for byte: nothing is stripped.
    """
    name, allowed = options.pop("idempotency_key"), options.pop("allow_secrets")
    draft = Draft(
        text=given_text(text),
        kind=None if kind is None else Kind(kind),
        **{**options, "retention": Retention(options["retention"])},
    )
    where = None if scope is None else Scope(scope)
    with door.memory() as memory:
        answer = door.settled(
            memory,
            lambda: memory.remember(
                draft,
                scope=where,
                namespace=namespace,
                idempotency_key=name,
                allow_secrets=allowed,
                receipt=receipt,
                similar=True,
            ),
        )
    written(door, answer)


@main.command
@click.argument("query", default="")
@click.option("--mode", type=_choice(Mode), help="How candidates are found.  [default: balanced]")
@click.option("--history", is_flag=True, help="Every version, those that no longer stand too, each with its standing.")
@click.option("--as-of", metavar="TIME|SEQUENCE", help="As it stood then; a sequence is of the one --namespace.")
@click.option("--scope", "scopes", multiple=True, type=_choice(Scope, "store"), help="Only this scope. (many)")
@click.option("--namespace", "namespaces", multiple=True, metavar="ID", help="Only this namespace. (many)")
@click.option("--kind", "kinds", multiple=True, type=_choice(Kind), help="Only this kind, and open tasks. (many)")
@click.option("--key", help="Only what has this key, and open tasks.")
@click.option("--tag", "tags", multiple=True, help="Only what has this tag, and open tasks. (many)")
@click.option("--origin", "origins", multiple=True, type=_choice(Origin), help="Only what came from there. (many)")
@click.option("--since", callback=moment, metavar="TIME", help="Only what was remembered then or later.")
@click.option("--until", callback=moment, metavar="TIME", help="Only what was remembered then or before.")
@click.option(
    "--trust",
    type=click.Choice([each.word for each in reversed(Trust)]),
    help="At least this; it only raises the floor.",
)
@click.option("--tasks", multiple=True, metavar="ADDRESS", help="Exactly these open tasks, to settle them. (up to 8)")
@click.option("--synonym", "synonyms", multiple=True, metavar="WORD=OTHER", help="What may stand for a word. (many)")
@click.option("--bytes", "most_bytes", type=int, help="What the context may weigh.  [default: 8192]")
@click.option("--items", "most_items", type=int, help="How many entries it may have.  [default: 16]")
@click.option("--tokens", "most_tokens", type=int, help="What it may cost a model, as estimated.  [default: no limit]")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="markdown: for a prompt."
)
@click.option("--heads", is_flag=True, help="With --json: the heads it was read at, which --bytes counts too.")
@click.option("--receipt", is_flag=True, help="Keep signed evidence of what was chosen: ledgerstone explain shows it.")
@click.option("--explain", is_flag=True, help="Keep it, and show after the context what was chosen and why.")
@verb
def recall(
    door: Door,
    /,
    query: str,
    form: str,
    most_bytes: int | None,
    most_items: int | None,
    most_tokens: int | None,
    *,
    heads: bool,
    receipt: bool,
    explain: bool,
    **options: Any,
) -> None:
    """Give a context: open tasks, what is found, what is recent.

    Nothing is cut: what does not fit is left out, and counted on standard error. What no longer stands or has expired
    comes with --history or --as-of only; what is erased never does, and what lies below the trust floor in a section
    of its own where the setting below_floor_bytes gives it one. A TIME is a date, meaning its first moment, or
    2026-11-30T09:00:00Z.
    """
    if door.json and form == "markdown":
        raise UsageError("--format markdown and --json: one of them", hint="what they say is the same")
    if heads and not door.json:
        raise UsageError("--heads: goes with --json")
    if explain and form == "markdown":
        raise UsageError("--format markdown and --explain: one of them", hint="--receipt, then: ledgerstone explain ID")
    given = door.settings().budget
    budget = replace(
        given,
        bytes=given.bytes if most_bytes is None else most_bytes,
        items=given.items if most_items is None else most_items,
        tokens=given.tokens if most_tokens is None else most_tokens,
    )
    policy = _policy(**options)
    with door.memory() as memory:
        context = memory.recall(query, policy=policy, budget=budget, receipt=receipt or explain, heads=heads)
        explained = memory.explain(context.receipt) if explain and context.receipt is not None else None

    if form == "markdown":
        from ledgerstone.core.rendering import markdown

        click.echo(markdown(context), nl=False)
        return
    from ledgerstone.core.rendering import BELOW_FLOOR, NOTICE
    from ledgerstone.entrypoints import wire

    lanes = {item.record.address: item.lane for item in (*context.items, *context.below_floor)}
    records = [item.record for item in context.items]
    below = [item.record for item in context.below_floor]

    def shown() -> str:
        parts = [_entries(door, records, lanes)] if records else []
        if below:
            parts += [BELOW_FLOOR, _entries(door, below, lanes)]
        if explained is not None:
            texts = {record.address: record.text or "" for record in (*records, *below)}
            parts.append(cli_receipts.explanation(explained, texts, door.width))
        return "\n\n".join(parts)

    why = {} if explained is None else {"explained": wire.receipt(explained)}
    door.answer(wire.recalled(context, heads=heads) | why, shown)
    anything = bool(records or below)
    if anything and door.width is not None and not door.json:
        click.echo(err=True)
    for notice in context.notices:
        door.say(notice)
    # An explanation has said both already.
    if context.omitted and explained is None:
        door.say("left out: " + ", ".join(f"{count} ({reason})" for reason, count in context.omitted.items()))
    if context.receipt is not None and explained is None:
        door.say(f"receipt {context.receipt}")
    if anything:
        door.say(NOTICE)
    else:
        door.say_nothing("nothing found here")


@main.command
@click.argument("target", metavar="ID")
@verb
def get(door: Door, target: str) -> None:
    """Give one memory exactly as it was given.

    By its id (the newest version), address or digest. Where standard output is no terminal, it receives the bytes
    of the text and nothing else.
    """
    with door.memory() as memory:
        record = memory.get(target)

    from ledgerstone.entrypoints import shown, wire

    if door.json:
        door.answer(wire.record(record), "")
        return
    for notice in record.notices:
        door.say(notice)
    if record.text is None:
        door.say(f"the text of {record.address} was erased by commit {record.ended_by}")
    elif door.width is None:
        click.echo(record.text.encode(), nl=False)
    else:
        click.echo(shown.plain(record.text))
        click.echo("\n" + shown.columns(shown.details(record), door.width), err=True)


@main.command("list")
@click.argument("what", type=click.Choice(["recent", "tasks", "all", "below_floor"]), default="recent")
@click.option("--limit", type=click.IntRange(1, MAX_LIST), default=20, show_default=True, help="How many a page.")
@click.option("--cursor", help="Continue where an earlier list ended.")
@click.option("--kind", type=_choice(Kind), help="Only what is of this kind.")
@click.option("--key", help="Only what has this key.")
@click.option("--tag", help="Only what has this tag.")
@verb
def list_(door: Door, /, what: str, limit: int, cursor: str | None, **only: str | None) -> None:
    """List what stands, the open tasks, or all versions.

    What lies below the trust floor is left out and counted. below_floor lists what stands there: at a terminal, or
    where the setting below_floor_bytes lets a recall give it.
    """
    from ledgerstone.core import canonical

    if what == "below_floor" and not (door.terminal or door.settings().below_floor_bytes):
        # Otherwise whatever program runs it could have what its user keeps from it.
        raise UsageError("list below_floor is for the user at a terminal", hint="or the setting below_floor_bytes")

    kind, key, tag = only["kind"], only["key"], only["tag"]
    for name, value, most in (("key", key, MAX_KEY_BYTES), ("tag", tag, MAX_TAG_BYTES)):
        if value is not None:
            canonical.text(value, name=name, least=1, most=most)

    def fits(record: Record) -> bool:
        return kind in {None, record.kind.value} and key in {None, record.key} and (tag is None or tag in record.tags)

    with door.memory() as memory:
        if kind is key is tag is None:
            page = memory.list_records(what, cursor=cursor, limit=limit)
        else:
            page = _fitting(memory, what, cursor, limit, fits)

    from ledgerstone.entrypoints import wire

    door.answer(wire.page(page), lambda: _entries(door, page.items, brief=True))
    for notice in page.notices:
        door.say(notice)
    if page.omitted:
        door.say("left out: " + ", ".join(f"{count} ({reason})" for reason, count in page.omitted.items()))
    if not page.items:
        door.say_nothing("nothing here")
    if page.cursor is not None:
        door.say(f"more: --cursor {page.cursor}")


@main.command
@click.argument("memory_id", metavar="ID")
@verb
def history(door: Door, memory_id: str) -> None:
    """Show all versions of a memory, and how each stands."""
    with door.memory() as memory:
        versions = memory.history(memory_id)

    from ledgerstone.entrypoints import shown, wire

    def text() -> str:
        return "\n\n".join(
            shown.entry(version, width=door.width) + "\n" + shown.MARGIN + shown.dim(_when(version))
            for version in versions
        )

    door.answer(wire.history(versions), text)
    for notice in wire.noticed(versions):
        door.say(notice)


@main.command
@click.argument("target", metavar="ID")
@click.option("--reason", help="Why it is done with.")
@RECEIPT
@ALLOW_SECRET
@IDEMPOTENCY_KEY
@verb
def close(door: Door, /, target: str, **asked: Any) -> None:
    """Close an open task; its text stays as it was."""
    with door.memory() as memory:
        answer = memory.close_task(target, **asked)
    written(door, answer)


@main.command
@click.argument("target", metavar="ID")
@click.option("--reason", required=True, help="Why it is withdrawn.")
@click.option("--reject", is_flag=True, help="Its value is wrong: said again, it is held, unless said at a terminal.")
@RECEIPT
@ALLOW_SECRET
@IDEMPOTENCY_KEY
@verb
def retract(door: Door, /, target: str, **asked: Any) -> None:
    """Withdraw a memory: it leaves recall, and history keeps it."""
    with door.memory() as memory:
        answer = memory.retract(target, **asked)
    written(door, answer)


for command in (
    *cli_curate.COMMANDS,
    *cli_erase.COMMANDS,
    *cli_move.COMMANDS,
    *cli_prove.COMMANDS,
    *cli_receipts.COMMANDS,
    *cli_admin.COMMANDS,
    cli_doctor.doctor,
):
    main.add_command(command)


def _policy(
    *,
    mode: str | None,
    as_of: str | None,
    trust: str | None,
    tasks: tuple[str, ...],
    synonyms: tuple[str, ...],
    **rest: Any,
) -> Policy:
    """What the options of a recall ask for."""
    sequence = as_of is not None and as_of.isascii() and as_of.isdigit()
    if sequence and len(rest["namespaces"]) != 1:
        raise UsageError(
            "--as-of: a sequence is of one namespace", hint="name it with --namespace ID, or give a time: 2026-11-30"
        )
    if mode == Mode.TASK_MAINTENANCE and not tasks:
        raise UsageError(
            "task_maintenance: shows the open tasks that are named, and none is",
            hint="name each with --tasks ADDRESS; they are listed by: ledgerstone list tasks",
        )
    from ledgerstone.entrypoints.wire import parse_time

    others: dict[str, list[str]] = {}
    for each in synonyms:
        word, _, other = each.partition("=")
        if not word.strip() or not other.strip():
            raise UsageError(f"--synonym: WORD=OTHER, not {each[:40]!r}")
        others.setdefault(word, []).append(other)
    return Policy(
        # Naming tasks says which mode is meant.
        mode=Mode(mode or ("task_maintenance" if tasks else "balanced")),
        as_of=None if as_of is None or sequence else parse_time(as_of, "--as-of"),
        at=int(as_of) if as_of is not None and sequence else None,
        floor=None if trust is None else TRUST_OF_WORD[trust],
        tasks=tasks,
        synonyms=others or None,
        scopes=tuple(map(Scope, rest.pop("scopes"))),
        kinds=tuple(map(Kind, rest.pop("kinds"))),
        origins=tuple(map(Origin, rest.pop("origins"))),
        **rest,
    )


def _entries(
    door: Door, records: list[Record] | tuple[Record, ...], lanes: dict[str, Lane] | None = None, *, brief: bool = False
) -> str:
    from ledgerstone.entrypoints import shown

    width = door.width
    return "\n\n".join(
        shown.entry(
            record,
            lane=None if lanes is None else lanes[record.address],
            width=width,
            brief=brief and width is not None,
        )
        for record in records
    )


def _fitting(memory: Memory, what: str, cursor: str | None, limit: int, fits: Callable[[Record], bool]) -> Page:
    """A page of the records that fit, and the cursor after the last of them."""
    from ledgerstone.core.values import Page

    found: list[Record] = []
    omitted: Counter[str] = Counter()
    while True:
        page = memory.list_records(what, cursor=cursor, limit=MAX_LIST)
        fitting = [index for index, record in enumerate(page.items) if fits(record)]
        room = limit - len(found)
        if len(fitting) >= room:
            # Asked for again, so that its cursor stands right after the last one taken.
            page = memory.list_records(what, cursor=cursor, limit=fitting[room - 1] + 1)
            omitted.update(page.omitted)
            return Page((*found, *filter(fits, page.items)), page.cursor, page.notices, dict(omitted))
        omitted.update(page.omitted)
        found += [page.items[index] for index in fitting]
        cursor = page.cursor
        if cursor is None:
            return Page(tuple(found), None, page.notices, dict(omitted))


def _when(record: Record) -> str:
    from ledgerstone.entrypoints import shown

    why = "" if record.reason is None else f" · {shown.one_line(record.reason)}"
    return f"{shown.moment(record.created_at)} · {record.origin.value}{why}"
