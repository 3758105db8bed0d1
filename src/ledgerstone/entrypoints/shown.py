"""What a person sees: calm text, and stored text so that it can neither steer a terminal nor pass for ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from ledgerstone.core.rendering import count as count  # noqa: PLC0414 - shown with the rest
from ledgerstone.core.rendering import one_line as one_line  # noqa: PLC0414 - shown with the rest
from ledgerstone.core.rendering import plain as plain  # noqa: PLC0414 - likewise
from ledgerstone.core.values import Lane, Refusal, Scope, Standing, Status, time_text

if TYPE_CHECKING:
    from ledgerstone.core.values import Event, Forgotten, Record

MARGIN: Final = "    "
# Less far in than a margin, so that no text can look like it.
STEP: Final = "  "
BETWEEN: Final = " \u00b7 "
MOST_WIDTH: Final = 96
LEAST_WIDTH: Final = 40
BRIEF_LINES: Final = 6
BRIEF_CHARACTERS: Final = 60
BRIEF_LEAST: Final = 8
MOST_PADDED: Final = 40
MOST_LISTED: Final = 20


def dim(text: str) -> str:
    """Text that stands back, where there are colours."""
    return click.style(text, dim=True)


def json_text(value: Mapping[str, Any], *, terminal: bool) -> str:
    """One JSON object: compact, or for a terminal indented and with what is not printable escaped."""
    if not terminal:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def entry(record: Record, *, lane: Lane | None = None, width: int | None = None, brief: bool = False) -> str:
    """A record: one line of what it is, then its text behind a margin, so that no text can look like a line of ours.

    ``width`` is a terminal's, and wraps both; ``brief`` leaves out what a long text has beyond its first lines.
    """
    words = [record.kind.value, record.scope.value, record.trust.word]
    if record.scope is Scope.SHARED:
        words[1] += f" {one_line(record.namespace_name or record.namespace)}"
    if record.status is not Status.ACTIVE:
        words[0] += f" {record.status.value}"
    if record.standing is not Standing.CURRENT:
        words.append(record.standing.value)
    if lane is not None and lane is not Lane.LEXICAL:
        words.append(lane.value)
    if record.due is not None:
        words.append(f"due {moment(record.due).removesuffix(' 00:00:00Z')}")
    if record.key is not None:
        words.append(f"key {one_line(record.key)}")
    head = _head(record.address, words, width)
    if record.text is None:
        return f"{head}\n{MARGIN}{dim(f'its text was erased by commit {record.ended_by}')}"
    lines = list(_lines(record.text, width))
    while len(lines) > 1 and not lines[-1]:
        del lines[-1]
    if brief and len(lines) > BRIEF_LINES:
        left = len(lines) - BRIEF_LINES + 1
        lines = [*lines[: BRIEF_LINES - 1], dim(f"and {left} more lines: ledgerstone get {record.address}")]
    return "\n".join([head, *(f"{MARGIN}{line}".rstrip() for line in lines)])


def _head(address: str, words: Iterable[str], width: int | None) -> str:
    lines: list[list[str]] = [[]]
    used = len(address) + len(STEP)
    for word in words:
        if lines[-1] and width is not None and used + len(word) > _room(width):
            lines.append([])
            used = len(STEP)
        lines[-1].append(word)
        used += len(word) + len(BETWEEN)
    return f"{click.style(address, bold=True)}{STEP}" + f"\n{STEP}".join(dim(BETWEEN.join(line)) for line in lines)


def details(record: Record) -> list[tuple[str, str]]:
    """What is known of a record beside its text."""
    rows = [
        ("address", record.address),
        ("namespace", f"{record.namespace} ({record.scope.value})"),
        ("kind", f"{record.kind.value}, {record.status.value}, {record.standing.value}"),
        ("said by", f"{record.origin.value}, {one_line(record.principal)}"),
        ("trust", record.trust.word),
        ("kept", record.retention.value),
        ("at", f"{moment(record.created_at)}, commit {record.sequence}"),
        ("digest", record.digest.hex()),
    ]
    optional: list[tuple[str, str | None]] = [
        ("session", record.session),
        ("host", record.host),
        ("key", record.key),
        ("title", record.title),
        ("source", record.source),
        ("place", record.place),
        ("tags", ", ".join(record.tags)),
        ("due", None if record.due is None else moment(record.due)),
        ("expires", None if record.expires is None else moment(record.expires)),
        ("sources", ", ".join(record.sources)),
        ("covers", ", ".join(record.covers)),
        ("let pass", ", ".join(record.overrides)),
        ("reason", record.reason),
        ("ended by", None if record.ended_by is None else f"commit {record.ended_by}"),
    ]
    return rows + [(name, one_line(value)) for name, value in optional if value]


def events(found: Iterable[Event], width: int | None) -> str:
    """The audit trail, a line for each event; two for each where a terminal is too narrow for one of them."""
    rows = [_event(one) for one in found]
    narrow = width is not None and any(len(STEP.join(row)) > width for row in rows)
    between = f"\n{MARGIN}" if narrow else STEP
    return "\n".join(f"{dim(at)}{STEP}{said}{between}{dim(who)}" for at, said, who in rows)


def _event(found: Event) -> tuple[str, str, str]:
    """When it was, what, and whose and where."""
    times = "" if found.count == 1 else f"{found.count} times"
    who = one_line(found.principal)
    if found.refusal is not None:
        words = [found.operation, "refused,", _REFUSED[found.refusal], times]
        place = "" if found.refusal == Refusal.UNBOUND.value else f"in {found.namespace}"
    else:
        passed = f"(let pass: {', '.join(found.overrides)})" if found.overrides else ""
        words = [found.operation, found.target or "", times, passed]
        who += f" as {found.origin.value}"
        place = f"{found.namespace} {found.sequence}"
    if found.host is not None:
        who += f" through {one_line(found.host)}"
    return moment(found.at), " ".join(filter(None, words)), BETWEEN.join(filter(None, (who, place)))


_REFUSED: Final = {
    Refusal.NO_GRANT.value: "no grant",
    Refusal.EXPIRED.value: "its grant has run out",
    Refusal.HOST.value: "not through that door",
    Refusal.UNBOUND.value: "nothing bound there",
}


def forgotten(found: Forgotten, texts: Mapping[str, str] | None = None, width: int | None = None) -> str:
    """What an erasure reached; or what it would: the first addresses, how their texts begin, and what stays."""
    by = ", ".join(f"{name} {sequence}" for name, sequence in found.commits)
    if not (found.addresses or found.names or found.reasons):
        return "nothing to erase"
    parts = [f"erased {reached(found)}, commit {by}" if by else "these would be erased for good:"]
    if not by:
        sorts = dict.fromkeys(found.summaries, "summary") | dict.fromkeys(found.copies, "copy")
        parts += _some(((one, sorts.get(one, ""), (texts or {}).get(one, "")) for one in found.addresses), width)
        parts += _some((one, "its reason") for one in found.reasons)
        parts += _some((one, "its name") for one in found.names)
        if found.rests:
            parts.append("these stay, though what they rest on goes:")
            parts += _some((one, "", "") for one in found.rests)
    return "\n".join(parts)


def wrapped(text: str, width: int | None) -> str:
    """A long line as a paragraph whose further lines stand back; without a width as it is."""
    if width is None:
        return text
    from textwrap import fill

    return fill(text, _room(width), subsequent_indent=MARGIN, break_long_words=False, break_on_hyphens=False)


def _room(width: int) -> int:
    return max(min(width, MOST_WIDTH), LEAST_WIDTH)


def reached(found: Forgotten) -> str:
    """How much an erasure reaches, in words."""
    counts = (("version", found.addresses), ("reason", found.reasons), ("name", found.names))
    parts = [count(len(each), word) for word, each in counts if each]
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if parts[1:] else "".join(parts)


def _some(rows: Iterable[tuple[str, ...]], width: int | None = None) -> Iterator[str]:
    listed = list(rows)
    for address, *notes in listed[:MOST_LISTED]:
        note = brief(STEP.join(filter(None, notes)), width, len(MARGIN) + len(address) + len(STEP))
        yield MARGIN + STEP.join(filter(None, (address, dim(note) if note else "")))
    if len(listed) > MOST_LISTED:
        yield f"{MARGIN}and {len(listed) - MOST_LISTED} more: --dry-run --json lists all"


def columns(rows: Iterable[tuple[str, ...]], width: int | None = None) -> str:
    """Rows of a name, a value and perhaps a note: names aligned, notes too where values are short, both dim.

    At a terminal of a ``width`` a value without a note goes on below itself, between words.
    """
    table = [tuple(row) for row in rows]
    wide = max((len(row[0]) for row in table), default=0)
    noted = [len(row[1]) for row in table if row[2:] and len(row[1]) <= MOST_PADDED]
    padding = max(noted, default=0)

    def line(name: str, value: str, note: str = "") -> str:
        if width is not None and not note and wide + len(STEP) + len(value) > width:
            from textwrap import wrap

            room = max(width - wide - len(STEP), BRIEF_LEAST)
            value = f"\n{' ' * wide}{STEP}".join(wrap(value, room, break_long_words=False, break_on_hyphens=False))
        return f"{dim(name.ljust(wide))}  " + (f"{value.ljust(padding)}  {dim(note)}" if note else value)

    return "\n".join(line(*row) for row in table)


def brief(text: str | None, width: int | None = None, before: int = 0) -> str:
    """How a text begins, within a line, and within what a terminal has beside ``before``; nothing of an erased one."""
    line = one_line(text or "")
    room = BRIEF_CHARACTERS if width is None else min(BRIEF_CHARACTERS, max(width - before, BRIEF_LEAST))
    return line if len(line) <= room else f"{line[: room - 1]}…"


def moment(microseconds: int) -> str:
    """A time for people, to the second."""
    return time_text(microseconds)[: len("2026-11-30T14:26:27")].replace("T", " ") + "Z"


def _lines(text: str, width: int | None) -> Iterator[str]:
    room = None if width is None else _room(width) - len(MARGIN)
    for line in plain(text).split("\n"):
        if room is None or len(line) <= room:
            yield line
            continue
        from textwrap import TextWrapper

        wrapper = TextWrapper(room, replace_whitespace=False, break_on_hyphens=False)
        yield from wrapper.wrap(line) or [""]
