"""A store held to all that is known of it: its history, what was erased here, its receipts, and what is expected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ledgerstone import administration, forgetting, receipts, verifying
from ledgerstone.core.authority import Caller
from ledgerstone.core.values import Finding, Report
from ledgerstone.errors import UsageError
from ledgerstone.following import enrolled
from ledgerstone.ledger import Ledger
from ledgerstone.verifying import Watch


def verify(
    ledger: Ledger, caller: Caller, *, full: bool, accept: bool, expected: bytes | str | None, watch: Watch
) -> Report:
    """See ``Memory.verify``."""
    if accept and expected is not None:
        raise UsageError("a store is accepted as it is, or held to what is expected: not both")
    if accept:
        report = administration.accept(ledger, caller)
        back = forgetting.again(ledger, caller) if report.ok else ()
        return replace(report, findings=report.findings + back)
    since, mark = ledger.tick(), ledger.store.mark()
    with ledger.store.read() as reader:
        report, gone = ledger.verified(reader, since, watch=watch, full=full)
        shape = reader.shape()
        if shape.lost or not shape.derived:
            return verifying.naming(report, gone)
        findings = report.findings
        keys, checked = receipts.keys(ledger.keyring, ()), receipts.Checked((), 0, 0, None)

        def erased() -> Iterable[Finding]:
            return forgetting.returned(ledger, reader)

        def of_receipts() -> Iterable[Finding]:
            nonlocal keys, checked
            keys = receipts.keys(ledger.keyring, enrolled(reader))
            newest = None if report.since is None else ledger.receipt_verified()
            checked = receipts.check(reader, keys, newest, ledger.entropy)
            return checked.findings

        for what, run in (("erasures", erased), ("receipts", of_receipts)):
            findings += tuple(verifying.named(what, reader, run, damaged=bool(findings)))
        if expected is not None:
            # Loaded where it is asked for: most verifications do not.
            from ledgerstone import proving  # noqa: PLC0415

            findings += proving.missing(reader, report.heads, expected, keys.keyring)
        report = replace(report, findings=findings, receipts=checked.kept, receipts_checked=checked.checked)
    if report.ok and not gone and mark == ledger.store.mark():
        if report.since is None:
            ledger.trust(report.heads, mark)
        ledger.keep_verified(report.heads, checked.newest)
    return verifying.naming(report, gone)


def rebuild(ledger: Ledger) -> Report:
    """See ``Memory.rebuild``."""
    with ledger.store.write() as writer:
        report = verifying.rebuild(writer, ledger.keyring)
    ledger.doubt()
    return report
