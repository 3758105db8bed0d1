"""The commands that tend what is there: condense it, let it come to a wider scope, index it by meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ledgerstone.core.values import Scope
from ledgerstone.entrypoints import host
from ledgerstone.entrypoints.frame import ALLOW_SECRET, IDEMPOTENCY_KEY, Door, given_text, moment, verb, written
from ledgerstone.errors import UsageError

if TYPE_CHECKING:
    from ledgerstone.core.values import Condensable

# Where a promotion may go without the id of a namespace.
_WIDER: Final = (Scope.PROJECT, Scope.USER, Scope.GLOBAL)
# Where records stand.
_HELD: Final = [each.value for each in Scope if each is not Scope.STORE]
# How many texts are indexed between two words on how far it is.
AT_ONCE: Final = 256


@click.command
@click.argument("text", metavar="[TEXT|-]", required=False)
@click.option("--covers", multiple=True, metavar="ADDRESS", help="A record that the summary stands for. (many)")
@click.option("--source-of", "sources", multiple=True, metavar="ADDRESS", help="One it rests on besides. (many)")
@click.option("--key", help="A name for what it is about.")
@ALLOW_SECRET
@IDEMPOTENCY_KEY
@click.option("--plan", is_flag=True, help="Write nothing; show what could be condensed.")
@click.option(
    "--before", callback=moment, metavar="TIME", help="With --plan: said before this.  [default: not the newest]"
)
@click.option("--scope", type=click.Choice(_HELD), help="With --plan: only there.")
@click.option("--namespace", metavar="ID", help="With --plan: only there.")
@click.option("--limit", type=click.IntRange(1, 64), help="With --plan: so many groups.  [default: 8]")
@verb
def compact(door: Door, /, text: str | None, covers: tuple[str, ...], **asked: Any) -> None:
    """Keep a summary that stands for what it covers.

    Prints its address. The summary is yours to write, and shorter than what it covers; with - it is standard input.
    What is covered stays, under its address and for precise words. With --plan groups of old records are proposed, and
    nothing is written.
    """
    write = {name: asked.pop(name) for name in ("sources", "key", "allow_secrets", "idempotency_key")}
    if asked.pop("plan"):
        if text is not None or covers or any(write.values()):
            raise UsageError("compact --plan: writes nothing, so there is no summary and nothing it covers")
        asked = {name: value for name, value in asked.items() if value is not None}
        if "scope" in asked:
            asked["scope"] = Scope(asked["scope"])
        with door.memory() as memory:
            found = memory.compaction_candidates(**asked)
        _planned(door, found, newest="before" in asked)
        return
    planned = [f"--{name}" for name, value in asked.items() if value is not None]
    if planned:
        raise UsageError(f"{', '.join(planned)}: with --plan only", hint="a summary goes where that is which it covers")
    if text is None:
        raise UsageError("compact: a summary, or --plan", hint="the plan proposes addresses to cover")
    if not covers:
        raise UsageError(
            "compact: what does it cover?",
            hint="--covers ADDRESS; addresses are proposed by: ledgerstone compact --plan --before TIME",
        )
    with door.memory() as memory:
        answer = memory.compact(given_text(text), covers, **write)
    written(door, answer)


def _planned(door: Door, found: tuple[Condensable, ...], *, newest: bool) -> None:
    from ledgerstone.entrypoints import shown, wire

    def text() -> str:
        return "\n\n".join(
            f"{len(group.covers)} records, {group.bytes} bytes  {shown.dim(_told(group))}\n"
            + "\n".join(f"{shown.MARGIN}{address}" for address in group.covers)
            for group in found
        )

    door.answer(wire.condensable(found), text)
    if not found:
        wider = "" if newest else "; the newest 64 of each namespace were left out: --before TIME looks at them too"
        door.say(f"nothing here to condense{wider}")


def _told(group: Condensable) -> str:
    from ledgerstone.entrypoints import shown

    told = f"source {group.source}" if group.source is not None else f"session {group.session or 'none'}"
    return shown.one_line(
        f"{group.scope.value} {group.namespace} \u00b7 {told} \u00b7 "
        f"{shown.moment(group.since)} to {shown.moment(group.until)}"
    )


@click.command
@click.argument("target", metavar="ID")
@click.option("--scope", type=click.Choice([each.value for each in _WIDER]), help="Where to.")
@click.option("--namespace", metavar="ID", help="One namespace by its id, in place of a scope.")
@ALLOW_SECRET
@IDEMPOTENCY_KEY
@verb
def promote(door: Door, /, target: str, scope: str | None, **asked: Any) -> None:
    """Let a memory come to a wider scope; prints its address there.

    It names what it came from, is trusted no more, and goes when that is erased. Where it stands there already, nothing
    is written. Takes a grant of its own:
    ledgerstone grants add YOU promote --scope user
    """
    with door.memory() as memory:
        answer = memory.promote(target, scope=None if scope is None else Scope(scope), **asked)
    written(door, answer)
    if answer.record.source is not None:
        from ledgerstone.entrypoints.shown import one_line

        door.say(f"whoever may read it there sees its source too: {one_line(answer.record.source)}")


@click.command
@click.option("--replace", is_flag=True, help="Let vectors go that another encoder made.")
@verb
def index(door: Door, /, *, replace: bool) -> None:
    """Encode what is not indexed by meaning yet.

    In the namespaces in sight; prints how many texts that were. Nothing waits for it: what is written meanwhile is
    written, and what is done stays done when it is cut short. Vectors of another encoder, which some program of yours
    may use, are replaced only with --replace.
    """
    why = host.words_alone(door.settings())
    if why is not None:
        raise UsageError(f"there is no encoder to index by: {why.says}", hint=why.hint)
    with door.memory() as memory, door.progress("texts") as tell:
        found = memory.coverage()
        if found.other is not None and not replace:
            raise UsageError(f"the vectors here are of {found.other}, not of {found.model}", hint=host.OTHER_HINT)
        done, left = 0, found.left
        while left:
            tell(done, done + left)
            more, left = memory.index_vectors(AT_ONCE)
            done += more
    from ledgerstone.entrypoints.shown import count

    said = f"{count(done, 'text')} indexed" if done else f"nothing to do: {count(found.texts, 'text')} indexed"
    door.answer({"model": found.model, "done": done, "left": left}, f"{said} by {found.model}")


COMMANDS: Final = (compact, promote, index)
