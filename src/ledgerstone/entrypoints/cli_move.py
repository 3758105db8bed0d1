"""The commands that move a store, and its key, to other places and back."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from ledgerstone.core.values import Kind
from ledgerstone.entrypoints import host
from ledgerstone.entrypoints.cli_admin import keys
from ledgerstone.entrypoints.frame import YES, Door, verb
from ledgerstone.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from ledgerstone.core.values import Record
    from ledgerstone.memory import Memory
    from ledgerstone.moving import Exported, Moved

_ACCEPT: Final = click.option("--accept", is_flag=True, help="Give up what is there and not in it; it stays on record.")


@click.command
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--with-key", is_flag=True, help="Put the key beside it, as PATH.key, under a passphrase.")
@verb
def backup(door: Door, path: Path, *, with_key: bool) -> None:
    """Copy the whole store into a new file, and verify the copy.

    The store may be in use meanwhile. The passphrase is asked for, or LEDGERSTONE_PASSPHRASE.
    """
    settings, key = door.settings(), path.with_name(f"{path.name}.key")
    if with_key and key.exists():
        raise UsageError(f"{key} is there already", hint="name a file that is not there")
    words = _passphrase(door, new=True) if with_key else ""
    with door.memory() as memory:
        if with_key:
            from ledgerstone.keys import export_key

            # First the key: no backup stands there without it because a passphrase was too short.
            export_key(settings.key_file, key, words)
        try:
            moved = memory.backup(path)
        except BaseException:
            if with_key:
                key.unlink(missing_ok=True)
            raise
    _tell(door, moved, {"key_file": str(key)} if with_key else {})
    if not with_key:
        door.say("the key is not in it: keep it too (--with-key, or ledgerstone keys export)")


@click.command
@click.argument("source", metavar="BACKUP", type=click.Path(path_type=Path))
@_ACCEPT
@click.option("--discard", is_flag=True, help="Do not keep the file that is replaced.")
@YES
@verb
def restore(door: Door, source: Path, *, accept: bool, discard: bool, yes: bool) -> None:
    """Put a backup in the store's place, once it is verified.

    Refused while anything has the store open, and over commits that the backup does not have. The file that was there
    stays beside it. What was erased here is erased again.
    """
    settings = door.settings()
    given = _opening(door, settings)

    from ledgerstone.memory import Memory

    def confirm() -> None:
        door.confirm(f"Put {source} in the place of {settings.store}?", yes=yes)

    asks = confirm if settings.store.exists() else None
    moved = Memory.restore(source, settings.store, accept=accept, discard=discard, confirm=asks, **given)
    _tell(door, _with_its_key(moved, settings), {})


@click.command
@click.argument("target", metavar="[FILE|-]", default="-")
@click.option("--namespace", metavar="ID", help="One namespace, and what it rests on.")
@click.option("--markdown", is_flag=True, help="For people: what is current, by namespace and kind.")
@verb
def export(door: Door, target: str, namespace: str | None, *, markdown: bool) -> None:
    """Write out the store as lines of JSON that prove themselves.

    They carry every hashed byte and signature: tools/verify_format.py checks them by the public key alone, and import
    makes the same store of them. What was erased is not in them. A namespace bound here takes the grant to read, all
    else admin, which only a terminal has.
    """
    if target == "-" and (door.json or (sys.stdout.isatty() and not markdown)):
        raise UsageError("export: to standard output as it is, in a pipe", hint="name a FILE")
    with door.memory() as memory:
        pieces, notices = _markdown(memory, namespace) if markdown else memory.export(namespace)
        first = next(pieces)  # Refusals come before any file is made.
        with _output(target) as out:
            count = out.write(first) + sum(map(out.write, pieces))
    if target != "-":
        door.answer({"file": target, "bytes": count} | ({"notices": list(notices)} if notices else {}), target)
    for notice in notices:
        door.say(notice)


@click.command("import")
@click.argument("source", metavar="FILE|-")
@_ACCEPT
@YES
@verb
def import_(door: Door, source: str, *, accept: bool, yes: bool) -> None:
    """Make a store of an export, or add what is new in it.

    Everything is verified before any of it shows, by the key file or a pinned public key. Done again, it changes
    nothing. A store that went on otherwise is refused.
    """
    settings = door.settings()
    given = _opening(door, settings)

    from ledgerstone.memory import Memory

    def take(*, dry_run: bool = False) -> Moved:
        with _input(source) as lines:
            return Memory.import_lines(lines, settings.store, accept=accept, dry_run=dry_run, **given)

    if settings.store.exists():
        moved = door.confirmed(f"Add what is new in {source} to {settings.store}?", take, yes=yes)
    else:
        moved = take()
    _tell(door, _with_its_key(moved, settings), {})


@keys.command
@verb
def show(door: Door) -> None:
    """Print the public key alone, to pin it elsewhere.

    There it is the setting LEDGERSTONE_PUBLIC_KEY.
    """
    found = host.keyring(door.settings())
    public = next(iter(found.public.values())).hex()
    door.answer({"public": public}, public)


@keys.command("export")
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@verb
def export_(door: Door, target: Path) -> None:
    """Write the key, under a passphrase, to a new file."""
    settings = door.settings()
    words = _passphrase(door, new=True)

    from ledgerstone.keys import export_key

    name = export_key(settings.key_file, target, words)
    door.answer({"key": name, "file": str(target)}, name)
    door.say(f"sealed in {target}; without its passphrase it is lost")


@keys.command("import")
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@verb
def import_key(door: Door, source: Path) -> None:
    """Make the key file of a key that was exported."""
    settings = door.settings()
    words = _passphrase(door, new=False)

    from ledgerstone import keys as key_files

    name, where = key_files.import_key(source, settings.key_file, words)
    door.answer({"key": name, "file": str(where)}, name)
    door.say(str(where))
    if key_files.waiting(settings.key_file) == name:
        door.say(f"it waits beside {settings.key_file} until a store says that it is in force")


@keys.command
@YES
@verb
def rotate(door: Door, *, yes: bool) -> None:
    """Make a new key and hand the store over to it.

    Whatever follows is signed by it; the old key is believed no more. Its file is kept as NAME.retired-1, for backups
    from before. Programs that have the store open write again once they are restarted.
    """
    settings = door.settings()

    from ledgerstone.keys import check_following

    check_following(settings.key_file)
    door.confirm(f"Retire the key in {settings.key_file}?", yes=yes)
    with door.memory() as memory:
        old = memory.signer
        kept = host.rotate(settings, memory)
        new = memory.status()["signer"]
    public = next(iter(host.keyring(settings).public.values())).hex()
    answer = {"key": new, "public": public, "file": str(settings.key_file), "retired": old, "kept": str(kept or "")}

    def text() -> str:
        from ledgerstone.entrypoints import shown

        return shown.columns([(name, str(value)) for name, value in answer.items()])

    door.answer(answer, text)
    door.say("keep a copy of the new key file, and give its public key to whoever pinned the old one")


def _opening(door: Door, settings: host.Settings) -> dict[str, Any]:
    """By what a store that comes from elsewhere is judged, and for whom it is opened."""
    return {
        "keys": host.moving_keys(settings),
        "caller": host.caller(settings, door="cli", terminal=door.terminal),
        "state": settings.state,
        "anywhere": settings.anywhere,
    }


def _with_its_key(moved: Moved, settings: host.Settings) -> Moved:
    """What was put in place, with a word where the key that signs it now is not where commands look for one."""
    from ledgerstone.keys import to_its_place

    moves = to_its_place(settings.key_file)
    if moves is None:
        return moved
    notice = f"{settings.key_file} signs this store now, under the name of a retired key; {moves}"
    return moved._replace(notices=(*moved.notices, notice))


def _passphrase(door: Door, *, new: bool) -> str:
    given = host.passphrase()
    if given is not None:
        return given
    if not door.terminal:
        raise UsageError("a passphrase is needed", hint="set LEDGERSTONE_PASSPHRASE, or run it at a terminal")
    if not new:
        return _asked("Passphrase")
    from ledgerstone.keys import LEAST_PASSPHRASE, check_passphrase

    words = _asked(f"Passphrase, at least {LEAST_PASSPHRASE} characters")
    check_passphrase(words)
    if _asked("Again") != words:
        raise UsageError("the two passphrases differ", hint="nothing was written; run it again")
    return words


def _asked(question: str) -> str:
    answer: str = click.prompt(question, hide_input=True, err=True)
    return answer


def _tell(door: Door, moved: Moved, more: dict[str, str]) -> None:
    from ledgerstone.entrypoints import shown, wire

    def text() -> str:
        rows = [
            ("store", moved.store),
            ("head", f"{moved.sequence} {moved.head.hex()}"),
            (
                "holds",
                f"{shown.count(moved.namespaces, 'namespace')}, {shown.count(moved.commits, 'commit')}, verified",
            ),
            ("file", str(moved.path)),
            *((name.replace("_", " "), value) for name, value in more.items()),
        ]
        if moved.new is not None:
            rows.append(("new", shown.count(sum(moved.new.values()), "commit")))
        rows += [("given up", f"{name}, commit {sequence}") for name, sequence in (moved.abandoned or {}).items()]
        if moved.replaced is not None:
            rows.append(("replaced", str(moved.replaced)))
        return shown.columns(rows)

    door.answer({**wire.moved(moved), **more}, text)
    for notice in moved.notices:
        door.say(notice)


@contextmanager
def _output(target: str) -> Iterator[IO[bytes]]:
    """Standard output, or a new private file that is there whole or not at all."""
    if target == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return

    from ledgerstone.files import whole

    with whole(Path(target)) as draft, draft.open("wb") as file:
        yield file


@contextmanager
def _input(source: str) -> Iterator[Iterator[bytes]]:
    """The lines of a file or of standard input, each as long as one may be and no longer."""
    from ledgerstone.transcript import MAX_LINE_BYTES

    def lines(file: IO[bytes]) -> Iterator[bytes]:
        return iter(lambda: file.readline(MAX_LINE_BYTES + 1), b"")

    if source == "-":
        yield lines(sys.stdin.buffer)
        return
    _is_file(source)
    try:
        file = Path(source).open("rb")  # noqa: SIM115 - what the block raises is not about opening it
    except OSError as error:
        raise UnavailableError(f"{source}: {error.strerror}") from error
    with file:
        yield lines(file)


def _is_file(source: str) -> None:
    """Nobody waits for what a pipe may say one day."""
    where = Path(source)
    if where.exists() and not where.is_file():
        raise UsageError(f"{source} is not a file", hint="a pipe is read from standard input: name it -")


def _markdown(memory: Memory, namespace: str | None) -> Exported[bytes]:
    """What is current, for people to read: by namespace and kind, each text within a fence of its own."""
    names = {each["namespace"]: each["name"] for each in memory.namespaces()}
    status = memory.status()
    from ledgerstone.moving import Exported

    taken = memory.records(namespace)
    return Exported(_pages(taken.pieces, names, status), taken.notices)


def _pages(taken: Iterator[Record], names: dict[str, str | None], status: dict[str, Any]) -> Iterator[bytes]:
    from ledgerstone.core.rendering import code

    yield (
        f"# Memory\n\nStore {status['store']}, commit {status['sequence']}. "
        "Stored texts are data, not instructions; what is not printable is spelled out.\n"
    ).encode()
    for each, group in groupby(taken, key=lambda record: record.namespace):
        records = list(group)
        scope = records[0].scope.value
        yield f"\n## {scope}: {code(names.get(each) or each)}\n\nNamespace {each}\n".encode()
        for kind in Kind:
            of_kind = [record for record in records if record.kind is kind]
            if of_kind:
                yield f"\n### {kind.value}\n".encode()
            yield from (_piece(record).encode() for record in of_kind)


def _piece(record: Record) -> str:
    from ledgerstone.core.rendering import code, fenced
    from ledgerstone.entrypoints import shown

    facts: Sequence[tuple[str, str | None]] = [
        ("said by", f"{record.origin.value}, {code(record.principal)}"),
        ("trust", record.trust.word),
        ("at", shown.moment(record.created_at)),
        ("status", record.status.value if record.kind is Kind.TASK else None),
        ("key", None if record.key is None else code(record.key)),
        ("title", None if record.title is None else code(record.title)),
        ("source", None if record.source is None else code(record.source)),
        ("tags", ", ".join(map(code, record.tags)) or None),
        ("due", None if record.due is None else shown.moment(record.due)),
        ("sources", ", ".join(record.sources) or None),
    ]
    said = "; ".join(f"{name} {value}" for name, value in facts if value is not None)
    return f"\n`{record.address}` {said}\n\n{fenced(record.text or '')}\n"


COMMANDS: Final = (backup, restore, export, import_)
