"""How a store begins: commit 0 of its own chain, which says whose it is."""

from __future__ import annotations

from ledgerstone.core import canonical, rules
from ledgerstone.core.authority import LOCAL_GRANTS, Caller
from ledgerstone.core.entries import Content, GenesisEntry, GrantEntry, KeyEntry, NameEntry, Stamp
from ledgerstone.core.values import LIBRARY_LIMITS, NameOf, Origin, Scope
from ledgerstone.errors import StoreError
from ledgerstone.ledger import Ledger
from ledgerstone.reading import Reading
from ledgerstone.writing import Batch


def begin(ledger: Ledger, caller: Caller) -> None:
    """Commit 0 of the store's own chain: its owner, its key and the owner's grants. Once; then nothing."""
    with ledger.store.write() as writer:
        if writer.first_chain() is not None:
            return
        if ledger.anchors is not None:
            # An empty file where a store was is not a place for a new one.
            ledger.anchors.check_store(None)
        from ledgerstone.core import credentials  # noqa: PLC0415 - not for an opening

        credentials.check_text("principal", caller.principal, caller.allow_secrets)
        signer = ledger.keyring.signer
        if signer is None:
            raise StoreError("a store is made with a signing key", hint="run: ledgerstone init")
        reading = Reading(writer, ledger.keyring, ledger.heads, ledger.clock())
        principal = canonical.identifier("prn", ledger.entropy(10))
        batch = Batch(
            reading,
            None,
            namespace=canonical.identifier("ns", ledger.entropy(10)),
            stamp=Stamp(at=reading.now, principal=principal, origin=Origin.SYSTEM),
            limits=LIBRARY_LIMITS,
            store=None,
        )
        batch.add(rules.plain(GenesisEntry(scope=Scope.STORE, nonce=ledger.entropy(16), owner=principal)))
        batch.add(rules.plain(KeyEntry(key=signer, public=ledger.keyring.public[signer])))
        batch.add(
            rules.with_content(
                lambda sealed: NameEntry(id=principal, of=NameOf.PRINCIPAL, content=sealed),
                Content(name=caller.principal),
                ledger.entropy(32),
            )
        )
        for act, scope in LOCAL_GRANTS:
            grant = canonical.identifier("grt", ledger.entropy(10))
            batch.add(rules.plain(GrantEntry(grant=grant, principal=principal, act=act, scope=scope)))
        where = batch.append(writer)
    ledger.bind(where.namespace)
    ledger.trust(reading.committed, writer.left)
