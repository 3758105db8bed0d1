"""The commands that erase for good: they show what would go, and ask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from ledgerstone.core.values import MAX_GET, Retention
from ledgerstone.entrypoints.frame import ALLOW_SECRET, UNWELL, YES, Door, beginnings, moment, verb
from ledgerstone.errors import UsageError

if TYPE_CHECKING:
    from ledgerstone.core.values import Forgotten
    from ledgerstone.memory import Memory

_KEEP: Final = click.option(
    "--keep", multiple=True, metavar="ADDRESS", help="A summary that stays, though what it covers goes. (many)"
)
_DRY_RUN: Final = click.option(
    "--dry-run", is_flag=True, help="Only say what would go; in a pipe too, of what may be read."
)


@click.command
@click.argument("targets", nargs=-1, metavar="[ID|key:NAME|reason:ADDRESS]...")
@click.option("--session", "sessions", multiple=True, metavar="NAME", help="All that was said in a session. (many)")
@click.option("--principal", "principals", multiple=True, metavar="NAME", help="All that somebody said. (many)")
@click.option("--idempotency-key", "writes", multiple=True, metavar="KEY", help="What was written under it. (many)")
@click.option("--namespace", "namespaces", multiple=True, metavar="ID", help="All of a namespace. (many)")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="The name of a program, and no text. (many)")
@click.option("--reason", help="Why; this stays, so say nothing of the text.")
@ALLOW_SECRET
@_KEEP
@_DRY_RUN
@YES
@verb
def forget(door: Door, /, targets: tuple[str, ...], reason: str | None, keep: tuple[str, ...], **asked: Any) -> None:
    """Erase texts for good; the chain still verifies.

    Contents, index and log. A memory by its id goes with all its versions, by address or digest one version, by
    key:NAME every memory with that key. With a session, a principal or a namespace goes its name too, also remotes and
    paths; from then on it is named by its id. reason:ADDRESS takes the reason alone that a close or retraction gives,
    reason:ns_...@5 that of the erasure in that commit. Shows first what would go, and asks; only at a terminal is
    anything erased, and --dry-run is answered anywhere. Exits 1 when something could not be done.
    """
    words = {"sessions": "session", "principals": "principal", "writes": "write", "namespaces": "namespace"}
    words["hosts"] = "host"
    wanted = (*targets, *(f"{word}:{name}" for option, word in words.items() for name in asked[option]))
    if not wanted:
        raise UsageError("forget: what?", hint="a memory, its address or key:NAME; or one of the options")

    def act(memory: Memory, *, dry_run: bool) -> Forgotten:
        return memory.forget(wanted, reason=reason, keep=keep, allow_secrets=asked["allow_secrets"], dry_run=dry_run)

    _erase(door, act, dry_run=asked["dry_run"], yes=asked["yes"])


@click.command
@click.option(
    "--retention",
    type=click.Choice([Retention.WORKING.value, Retention.SESSION.value, Retention.SHORT_TERM.value]),
    help="In place of what has expired: what was meant to be kept so long.",
)
@click.option("--before", callback=moment, metavar="TIME", help="With --retention: and was said before this.")
@_KEEP
@_DRY_RUN
@YES
@verb
def expire(
    door: Door, retention: str | None, before: int | None, keep: tuple[str, ...], *, dry_run: bool, yes: bool
) -> None:
    """Erase the texts whose expiry has passed, as forget does.

    They left recall when their time came, and stay until this is run. With --retention and --before also texts that
    have no expiry: those of that retention, said before that time, open tasks excepted.
    """
    chosen = None if retention is None else Retention(retention)

    def act(memory: Memory, *, dry_run: bool) -> Forgotten:
        return memory.expire(retention=chosen, before=before, keep=keep, dry_run=dry_run)

    _erase(door, act, dry_run=dry_run, yes=yes)


def _erase(door: Door, act: Callable[..., Forgotten], *, dry_run: bool, yes: bool) -> None:
    """Show what would go; unless it is a dry run, ask, erase, and say what is left."""
    from ledgerstone.entrypoints import shown, wire

    with door.memory() as memory:
        # Elsewhere than at a terminal the act itself is refused, before anything is shown.
        if dry_run or door.terminal:
            plan = act(memory, dry_run=True)
            texts = {} if door.json else beginnings(memory, plan.addresses[:MAX_GET])
            if dry_run:
                door.answer(wire.forgotten(plan), lambda: shown.forgotten(plan, texts, door.width))
                return
            if plan.addresses or plan.names or plan.reasons:
                if not door.json:
                    click.echo(shown.forgotten(plan, texts, _width()), err=True)
                door.confirm(f"Erase {shown.reached(plan)} for good?", yes=yes)
        done = act(memory, dry_run=False)
    door.answer(wire.forgotten(done), lambda: shown.forgotten(done))
    said = [f"left: {line}" for line in done.left]
    if done.commits:
        said.append(f"not reached: {'; '.join(done.unreached)}")
    for line in said:
        door.say(shown.wrapped(line, _width()))
    if done.left:
        click.get_current_context().exit(UNWELL)


def _width() -> int | None:
    """How wide what is said beside the answer may be; None when nobody sits before it."""
    if not sys.stderr.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


COMMANDS: Final = (forget, expire)
