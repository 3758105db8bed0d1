"""What every command shares: the flags, who sits there, how answers and errors leave, and with which exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Final, NoReturn, ParamSpec, TypeVar

import click

from ledgerstone.core.values import MAX_GET
from ledgerstone.entrypoints import host
from ledgerstone.errors import LedgerstoneError, NamespaceError, RuleError, UnavailableError, UsageError

if TYPE_CHECKING:
    from ledgerstone.core.values import Remembered
    from ledgerstone.memory import Memory

P = ParamSpec("P")
T = TypeVar("T")


def _by_user(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """What only the user may say; otherwise whatever program says it could say that its secret is none."""
    if value and not ctx.ensure_object(Door).terminal:
        raise UsageError(f"{option.opts[0]} is for the user at a terminal", hint="or the setting allow_secrets")
    return value


MCP_HINT: Final = "install it from the checkout: pip install '.[mcp]'"
OVERRIDE_HINT: Final = (
    "leave it out, and say where it is kept; if it is none, say so at a terminal: --allow-secret RULE"
)
YES: Final = click.option("--yes", is_flag=True, help="Do not ask. Counts at a terminal only.")
IDEMPOTENCY_KEY: Final = click.option(
    "--idempotency-key", metavar="NAME", help="Said again under the same name, it is not written twice."
)
RECEIPT: Final = click.option(
    "--receipt", metavar="ID", help="The receipt of the recall that it was made under, which it then cites."
)
ALLOW_SECRET: Final = click.option(
    "--allow-secret",
    "allow_secrets",
    multiple=True,
    callback=_by_user,
    metavar="RULE",
    help="At a terminal: it is no credential. (many)",
)
UNWELL: Final = 1
FINDINGS: Final = 4
INTERRUPTED: Final = 130
HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 96}


@dataclass(frozen=True, slots=True)
class Door:
    """One run of the command line."""

    flags: Mapping[str, str | None] = field(default_factory=dict)
    json: bool = False
    terminal: bool = False

    def settings(self) -> host.Settings:
        """What the host decided."""
        return host.settle(self.flags)

    @contextmanager
    def memory(self, *, create: bool = False, check: bool = True) -> Iterator[Memory]:
        """The store as whoever runs this command sees it; without ``check`` also one that is refused."""
        settings = self.settings()
        who = host.caller(settings, door="cli", terminal=self.terminal)
        with host.open_memory(settings, who, create=create, check=check) as memory:
            yield memory

    @property
    def width(self) -> int | None:
        """How wide the terminal is that answers go to; None when it is none."""
        if not sys.stdout.isatty():
            return None
        from shutil import get_terminal_size

        return get_terminal_size().columns

    def answer(self, wire: Mapping[str, Any], text: str | Callable[[], str]) -> None:
        """The answer itself, on standard output: one JSON object, or text with a line's end."""
        if self.json:
            from ledgerstone.entrypoints.shown import json_text

            click.echo(json_text(wire, terminal=sys.stdout.isatty()))
            return
        shown = text if isinstance(text, str) else text()
        if shown:
            click.echo(shown)

    def say(self, text: str) -> None:
        """A word beside the answer, on standard error; with --json nothing is said beside."""
        if not self.json and text:
            click.secho(text, dim=True, err=True)

    def say_nothing(self, text: str) -> None:
        """Say that there is nothing to show; and why no project could have anything, where that is so."""
        settings = self.settings()
        blind = settings.project is None and settings.place is None
        self.say(f"{text}; no project is in sight, since {settings.no_place}" if blind else text)

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Something to tell how much is done, and of how much; shown on standard error, at a terminal only."""
        shown = not self.json and sys.stderr.isatty()
        line = ""

        def tell(done: int, total: int) -> None:
            nonlocal line
            before, line = line, f"\x1b[K{done:,} of {total:,} {what}\r"
            if shown and line != before:
                click.echo(line, err=True, nl=False)

        try:
            yield tell
        finally:
            if shown:
                click.echo("\x1b[K", err=True, nl=False)

    def settled(self, memory: Memory, write: Callable[[], T]) -> T:
        """Write. Where a known project is met at a new place, ask once whether this place belongs to it."""
        try:
            return write()
        except NamespaceError as error:
            if error.confirms is None or not self.terminal:
                raise
            click.confirm(f"{error.message}. Is this checkout yours?", abort=True, err=True)
            hints = memory.caller.project
            # The checkout is meant, wherever in it somebody stands.
            whole = memory.caller if hints is None else replace(memory.caller, project=replace(hints, inside=()))
            memory.bind(whole).use_project(error.confirms)
        return write()

    def confirmed(self, question: str, act: Callable[..., T], *, yes: bool) -> T:
        """Do an act that can be judged by a dry run: where somebody is asked, only once it was found to be allowed."""
        if self.terminal and not yes:
            act(dry_run=True)
        self.confirm(question, yes=yes)
        return act()

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask on the terminal; where there is none nothing is asked, since such acts are refused there anyway."""
        if self.terminal and not yes:
            click.confirm(question, abort=True, err=True)


def verb(function: Callable[Concatenate[Door, P], T]) -> Callable[P, T]:
    """Make a function a command's body: it gets the door, and the command gets ``--json``."""

    @click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object.")
    @click.pass_obj
    @wraps(function)
    def run(door: Door, /, *args: P.args, **options: P.kwargs) -> T:
        as_json = bool(options.pop("as_json"))
        try:
            return function(replace(door, json=as_json), *args, **options)
        except RuleError as error:
            if error.rule == "secret" and "allow_secrets" in options:
                error.hint = OVERRIDE_HINT
            raise

    # Click calls it without the door, which pass_obj puts first.
    return run


def moment(_: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A date or a time of an option, as microseconds UTC; refused by the option's name."""
    if value is None:
        return None
    from ledgerstone.entrypoints.wire import parse_time

    return parse_time(value, option.opts[0])


class Program(click.Group):
    """The group of all commands: its help in sections, its errors in one shape, an exit code for each family."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the help."""
        del ctx
        return [name for names in self.sections.values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of what they are for."""
        for heading, names in self.sections.items():
            found = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            with formatter.section(heading):
                formatter.write_dl([(name, command.get_short_help_str(limit=62)) for name, command in found])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command and leave with its exit code; an error goes to standard error in the one shape."""
        given = sys.argv[1:] if args is None else list(args)
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character shows its number; it is no reason to fail.
            getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
        try:
            code = super().main(given, *rest, **{**options, "standalone_mode": False})
        except click.Abort:
            click.echo("nothing was done", err=True)
            sys.exit(INTERRUPTED)
        except click.ClickException as error:
            _report(_usage(error), given)
        except LedgerstoneError as error:
            _report(error, given)
        except (UnicodeError, RecursionError, OverflowError, ValueError, OSError) as error:
            # What no check foresaw of a path, a name or a configuration is still the caller's to mend.
            _report(_unforeseen(error), given)
        sys.exit(code if isinstance(code, int) else 0)


def _unforeseen(error: Exception) -> LedgerstoneError:
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return UnavailableError(
            f"the answer could not be written: {error.strerror}",
            hint="make room there; what was asked for may be done, so look before you repeat it",
        )
    from ledgerstone.core.rendering import told

    return UsageError(
        told(error),
        hint="look at the arguments, the environment and the configuration: ledgerstone doctor",
    )


def _usage(error: click.ClickException) -> UsageError:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption) and context is not None and context.parent is not None:
        root = context.find_root()
        if any(error.option_name in each.opts for each in root.command.params):
            words = context.command_path.split()
            return UsageError(
                f"{error.option_name} stands before the command",
                hint=f"so: {' '.join([words[0], error.option_name, '...', *words[1:]])}",
            )
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Argument):
        error.param_hint = f"'{(error.param.metavar or error.param.name or '').strip('[]')}'"
    hint = "" if context is None else f"see: {context.command_path} --help"
    text = error.format_message().strip()
    return UsageError(text[:1].lower() + text[1:].removesuffix("."), hint=hint)


def _report(error: LedgerstoneError, given: Sequence[str]) -> NoReturn:
    from ledgerstone.entrypoints.shown import json_text, plain

    options = given[: given.index("--")] if "--" in given else given
    if "--json" in options:
        click.echo(json_text(error.wire(), terminal=sys.stderr.isatty()), err=True)
    else:
        # No command's context stands any more, which said so.
        color = False if host.without_colour() else None
        click.secho(f"{click.style('ledgerstone:', fg='red')} {plain(error.message)}", err=True, color=color)
        if error.hint:
            click.secho(f"  {plain(error.hint)}", dim=True, err=True, color=color)
    sys.exit(error.exit_code)


def given_text(argument: str) -> str:
    """The text of an argument; of ``-`` all of standard input, byte for byte, as UTF-8."""
    if argument != "-":
        return argument
    from ledgerstone.core.values import MAX_TEXT_BYTES

    if sys.stdin.isatty():
        click.secho(
            "reading the text from this terminal; Ctrl-D at the beginning of a line ends it", dim=True, err=True
        )
    data = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if error.end == len(data) > MAX_TEXT_BYTES:
            raise UsageError(f"standard input: at most {MAX_TEXT_BYTES} bytes") from None
        raise UsageError(
            f"standard input: UTF-8, not 0x{data[error.start]:02x} at byte {error.start + 1}",
            hint="convert it first: iconv -t UTF-8",
        ) from None


def beginnings(memory: Memory, addresses: Sequence[str]) -> dict[str, str]:
    """How texts begin, by address, as far as they are there and can be read from here."""
    from ledgerstone.entrypoints.shown import brief

    parts = [addresses[start : start + MAX_GET] for start in range(0, len(addresses), MAX_GET)]
    records = [record for part in parts for record in memory.get_many(part)]
    return {record.address: brief(record.text) for record in records if record is not None}


def written(door: Door, answer: Remembered) -> None:
    """Show what a write came to: its address, and beside it where it stands."""
    from ledgerstone.entrypoints import wire
    from ledgerstone.entrypoints.shown import brief

    found = answer.record
    door.answer(wire.remembered(answer), found.address)
    made = " (new)" if answer.created_namespace else ""
    status = "" if found.status.value == "active" else f" {found.status.value}"
    door.say(
        f"{found.kind.value}{status} in {found.scope.value} {found.namespace}{made}, {found.trust.word}, "
        f"commit {answer.sequence}"
    )
    for notice in answer.notices:
        door.say(notice)
    if answer.repeated:
        door.say("it was written before, and nothing was written now")
    for one in answer.similar:
        how = "says the same" if one.same else f"shares {one.overlap // 10} % of its words"
        door.say(f"{one.address} {how}")
    if answer.similar and found.standing.value == "current":
        door.say("if this corrects what stands there, use --replaces, or retract one")
    if answer.replaced is not None and answer.replaced.text not in {None, found.text}:
        door.say(f"it replaces {answer.replaced.address}: {brief(answer.replaced.text)}")
