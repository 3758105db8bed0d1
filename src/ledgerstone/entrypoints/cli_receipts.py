"""The commands that show what a recall chose, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from ledgerstone.entrypoints.frame import YES, Door, beginnings, verb

if TYPE_CHECKING:
    from ledgerstone.receipts import Explained, Item


@click.command
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="How many.")
@click.option("--drop", "dropped", multiple=True, metavar="ID", help="Take this one out, and its query with it.")
@click.option("--drop-all", is_flag=True, help="Take all of yours out.")
@YES
@verb
def receipts(door: Door, limit: int, dropped: tuple[str, ...], *, drop_all: bool, yes: bool) -> None:
    """List your newest receipts of recalls.

    They are what ledgerstone recall --receipt kept. The newest 10,000 of a store are kept. ledgerstone explain ID
    shows one.
    """
    with door.memory() as memory:
        if drop_all:
            door.confirm("Take all of your receipts out, those of other projects too?", yes=yes)
        if dropped or drop_all:
            gone = memory.drop_receipts(() if drop_all else dropped)
            door.answer({"dropped": gone}, f"{gone} taken out")
            return
        found = memory.receipts(limit)

    from ledgerstone.entrypoints import shown, wire

    rows = [(one.id, _query(one), f"{one.receipt.mode.value}, {shown.moment(one.receipt.at)}") for one in found]
    door.answer({"receipts": [wire.receipt(one, listed=True) for one in found]}, lambda: shown.columns(rows))
    if not found:
        door.say("no receipts; ledgerstone recall --receipt keeps one")


@click.command
@click.argument("receipt", metavar="ID")
@verb
def explain(door: Door, receipt: str) -> None:
    """Show what one recall was asked, and what it chose and why.

    And what it left out. Its hash and signature are checked first. With --json it carries what a stranger needs to
    check them.
    """
    from ledgerstone.entrypoints import wire

    with door.memory() as memory:
        found = memory.explain(receipt)
        addresses = [item.address for item in found.items if item.address is not None]
        door.answer(wire.receipt(found), lambda: explanation(found, beginnings(memory, addresses), door.width))


def _query(found: Explained) -> str:
    from ledgerstone.entrypoints import shown

    return "(not kept)" if found.query is None else shown.brief(found.query)


def _ranking(scorer: str) -> str:
    """What ranked, for people: the names behind the last of the ranking's own are those of who had a say besides."""
    words = scorer.split()
    own = max((place for place, word in enumerate(words) if word.startswith("concepts/")), default=len(words))
    by = ["words (bm25)", "related words", *(f"meaning ({word})" for word in words[own + 1 :])]
    return ", ".join(by)


def explanation(found: Explained, texts: Mapping[str, str], width: int | None) -> str:
    """What a recall was asked, chose and left out, as a person reads it; ``texts`` by address."""
    from ledgerstone.entrypoints import shown

    receipt = found.receipt
    below = f"{receipt.below_floor_bytes} of {receipt.most_below_floor_bytes} bytes, {len(receipt.below_floor)} items"
    head = [
        ("receipt", found.id),
        ("query", _query(found)),
        ("mode", receipt.mode.value),
        ("at", shown.moment(receipt.at)),
        (
            "budget",
            f"{receipt.bytes} of {receipt.most_bytes} bytes, {len(receipt.chosen)} of {receipt.most_items} items",
        ),
        *([("below the floor", below)] if receipt.most_below_floor_bytes else []),
        *(("seen", f"{one.namespace} up to commit {one.sequence}") for one in receipt.heads),
        *(("left out", f"{one.count} ({one.reason})") for one in receipt.left_out),
        ("ranked by", _ranking(receipt.scorer)),
    ]
    named = [item.address or "(not in sight here)" for item in found.items]
    lanes = [item.lane if item.score is None else f"{item.lane} {item.score / 1_000_000:.3f}" for item in found.items]
    before = sum(max(map(len, column), default=0) + len(shown.STEP) for column in (named, lanes))

    def note(item: Item) -> str:
        standing = shown.BETWEEN.join(filter(None, (item.section and "below the floor", item.standing)))
        text = shown.brief(texts.get(item.address or "", ""), width, before + len(standing) + len(shown.BETWEEN))
        return shown.BETWEEN.join(filter(None, (standing, text)))

    chosen = list(zip(named, lanes, map(note, found.items), strict=True))
    return "\n".join([shown.columns(head, width), "", shown.columns(chosen) if chosen else "nothing was chosen"])


COMMANDS: Final = (receipts, explain)
