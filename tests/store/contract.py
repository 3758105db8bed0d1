"""What every backend keeps: a class of promises that each inherits with a place for its stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledgerstone import Draft, Kind, Memory, Mode, Record, Scope, Trust
from ledgerstone.core import canonical, entries, merkle
from ledgerstone.core.chain import Head
from ledgerstone.core.merkle import leaf_hash
from ledgerstone.core.words import token
from ledgerstone.reading import Chain
from ledgerstone.store import open_store
from ledgerstone.store.protocol import FOLD_EVERY, NOW, Store, Terms
from tests.stores import OWNER, open_memory, process

WRITERS = 4
WRITES = 250


class BlockError(Exception):
    """What goes wrong in the middle of a block."""


def append_and_fail(memory: Memory) -> None:
    """A write block that appends commits to two chains and then fails."""
    with memory._ledger.writes(OWNER) as block:
        block.batch(block.identity.target(Scope.SESSION))
        raise BlockError


def user_chain(memory: Memory) -> Chain:
    """The chain of the user's namespace, proven."""
    with memory._ledger.reads(OWNER) as (_, identity):
        return identity.chain(identity.target(Scope.USER).place.namespace or "")


def remember_many(location: Path, name: str) -> None:
    """One of several writers at once: it makes the store if it comes first."""
    with open_memory(location, now=None) as memory:
        for number in range(WRITES):
            memory.remember(f"{name} {number}", scope=Scope.USER)


class StoreContract:
    """The promises. A backend inherits them and says where its stores are."""

    @pytest.fixture
    def location(self, tmp_path: Path) -> Path:
        """A place where there is no store yet."""
        raise NotImplementedError

    @pytest.fixture
    def memory(self, location: Path) -> Iterator[Memory]:
        """A memory over a new store."""
        with open_memory(location) as memory:
            yield memory

    @pytest.fixture
    def store(self, memory: Memory, location: Path) -> Iterator[Store]:
        """The same store, opened a second time."""
        assert memory.status()["writable"]
        store = open_store(location)
        yield store
        store.close()

    def test_what_is_appended_is_read_back(self, memory: Memory, store: Store) -> None:
        """Header, entry, content and salt come back byte for byte, and lead to the commit and digest answered."""
        kept = memory.remember(Draft(text="the door is blue\n", key="door"), scope=Scope.USER, idempotency_key="once")

        with store.read() as reader:
            chain = reader.chain(kept.record.namespace)
            assert chain is not None
            ((number, position, version),) = reader.versions(kept.record.memory)
            header, entry = reader.header(number, kept.sequence), reader.entry(number, position)
            content = reader.content(number, position)
            written = entries.decode_header(header or b"").idempotency

        assert (number, version) == (chain.number, 1)
        assert header is not None
        assert leaf_hash(header) == kept.commit
        assert entry is not None
        assert entries.digest_of(entry) == kept.record.digest
        assert content is not None
        decoded = entries.decode_entry(entry)
        assert isinstance(decoded, entries.RecordEntry)
        assert canonical.commitment(*content) == decoded.content.commitment
        assert entries.decode_content(content[1]).text == "the door is blue\n"
        assert written is not None
        with store.read() as reader:
            assert reader.idempotent(number, written.key) == kept.sequence
            assert reader.idempotent(number, bytes(32)) is None

    def test_a_record_is_found_by_each_way_that_leads_to_it(self, memory: Memory, store: Store) -> None:
        """By id, digest, key, source and cover; and a stranger to the store is found by none."""
        first = memory.remember(Draft(text="a long tale of a door", key="door"), scope=Scope.USER).record
        address = (first.address,)
        draft = Draft(text="door", kind=Kind.SUMMARY, sources=address, covers=address)
        short = memory.remember(draft, scope=Scope.USER)

        with store.read() as reader:
            ((number, position, _),) = reader.versions(first.memory)
            ((_, above, _),) = reader.versions(short.record.memory)

            assert reader.digests(first.digest) == [(number, position)]
            assert reader.holder(number, "door") == position
            assert reader.resting_on(number, position) == reader.covering(number, position) == [above]
            assert reader.covered(number, [position, above]) == [(position, above)]
            assert reader.versions("mem_0000000000000000") == []
            assert reader.digests(bytes(32)) == []
            assert reader.holder(number, "roof") is None
            assert reader.resting_on(number, above) == []

    def test_what_is_read_together_is_what_is_read_one_by_one(self, memory: Memory, store: Store) -> None:
        """Versions, headers and nodes in the order asked; what is not there is passed over."""
        kept = [memory.remember(f"note {number}", scope=Scope.USER).record for number in range(20)]
        covers = (kept[4].address,)
        memory.remember(Draft(text="short", kind=Kind.SUMMARY, sources=covers, covers=covers), scope=Scope.USER)

        with store.read() as reader:
            ((number, first, _),) = reader.versions(kept[0].memory)
            ((_, covered, _),) = reader.versions(kept[4].memory)
            versions = list(reader.stored(number, [covered, first, 1 << 30]))
            headers, nodes = (
                reader.headers_of(number, [2, 1, 1 << 30]),
                reader.nodes_of(number, [(0, 0), (1, 0), (9, 9)]),
            )

            assert [(each.position, each.covered) for each in versions] == [(covered, True), (first, False)]
            for each in versions:
                assert each.standing == reader.standing(number, each.position)
                assert each.entry == reader.entry(number, each.position)
                assert each.content == reader.content(number, each.position)
            assert headers == {sequence: reader.header(number, sequence) for sequence in (1, 2)}
            assert nodes == {key: reader.node(number, *key) for key in ((0, 0), (1, 0))}
            assert list(reader.stored(number, [])) == []

    def test_a_version_is_read_with_the_content_that_holds_its_text(self, memory: Memory, store: Store) -> None:
        """Its own, or that of the version it carries on, in the order asked; what has none is passed over."""
        kept = [memory.remember(Draft(text=f"task {one}", kind=Kind.TASK), scope=Scope.USER).record for one in "ab"]
        closed = memory.close_task(kept[0].address).record
        memory.forget(kept[1].memory, dry_run=False)

        with store.read() as reader:
            number, first, _ = reader.versions(closed.memory)[0]
            _, last, _ = reader.versions(closed.memory)[1]
            ((_, erased, _),) = reader.versions(kept[1].memory)
            text = reader.content(number, first)

            assert text is not None
            assert list(reader.bodies(number, [last, erased, 1 << 30, first])) == [(last, text[1]), (first, text[1])]
            assert list(reader.bodies(number, [])) == []

    def test_what_stands_beside_a_position_is_of_its_source_and_meets_the_terms(
        self, memory: Memory, store: Store
    ) -> None:
        """Near enough, trusted enough, not expired, of the kinds asked for; the position itself whatever it is."""
        later = 4_000_000_000_000_000
        talk = [Draft(text=f"turn {number}", source="talk") for number in range(6)]
        talk[3] = Draft(text="turn 3", source="talk", kind=Kind.EPISODE, expires=later)
        talk[4] = Draft(text="turn 4", source="page")
        kept = [each.record for each in memory.remember_many(talk, scope=Scope.USER)]

        with store.read() as reader:
            number, first, _ = reader.versions(kept[0].memory)[0]

            def beside(terms: Terms, reach: int = 9) -> dict[int, set[int]]:
                rows = reader.beside(number, [first + 2, first + 4], reach, NOW, terms)
                return {asked - first: {near - first for near in line} for asked, line in rows}

            assert beside(Terms(0, None, frozenset())) == {2: {0, 1, 2, 3, 5}, 4: {4}}
            assert beside(Terms(0, later - 1, frozenset()), reach=1) == {2: {1, 2, 3}, 4: {4}}
            assert beside(Terms(0, later, frozenset()), reach=1) == {2: {1, 2}, 4: {4}}
            assert beside(Terms(0, None, frozenset({Kind.EPISODE}))) == {2: {2, 3}, 4: {4}}
            assert beside(Terms(Trust.USER_EXPLICIT.value + 1, None, frozenset())) == {2: {2}, 4: {4}}
            assert reader.beside(number, [], 9, NOW, Terms(0, None, frozenset())) == []

    def test_what_is_offered_is_in_view_and_meets_the_terms(self, memory: Memory, store: Store) -> None:
        """Only what is trusted enough, not expired and of the kinds asked for, in the order asked."""
        later = 4_000_000_000_000_000
        drafts = [
            Draft(text="a note"),
            Draft(text="a tale", kind=Kind.EPISODE, expires=later),
            Draft(text="a slip"),
        ]
        kept = [each.record for each in memory.remember_many(drafts, scope=Scope.USER)]
        memory.retract(kept[2].address, reason="it was wrong")

        with store.read() as reader:
            number, first, _ = reader.versions(kept[0].memory)[0]
            asked = [first + 1, first, first + 2]

            def offered(terms: Terms) -> list[int]:
                return [row.position - first for row in reader.offered(number, asked, NOW, terms)]

            assert offered(Terms(0, None, frozenset())) == offered(Terms(0, later - 1, frozenset())) == [1, 0]
            assert offered(Terms(0, later, frozenset())) == [0]
            assert offered(Terms(0, None, frozenset({Kind.EPISODE}))) == [1]
            assert offered(Terms(Trust.USER_EXPLICIT.value + 1, None, frozenset())) == []
            assert list(reader.offered(number, asked, NOW, Terms(0, None, frozenset()))) == list(
                reader.words_of(number, asked[:2])
            )
            assert list(reader.offered(number, [], NOW, Terms(0, None, frozenset()))) == []

    def test_a_block_sees_one_snapshot(self, memory: Memory, store: Store) -> None:
        """What others commit meanwhile shows in the next block, not in this one."""
        namespace = memory.remember("before", scope=Scope.USER).record.namespace

        with store.read() as reader:
            first = reader.chain(namespace)
            during = memory.remember("during", scope=Scope.USER)
            second = reader.chain(namespace)
            newer = [number for number, _, _ in reader.versions(during.record.memory)]
        with store.read() as reader:
            after = reader.chain(namespace)

        assert first == second
        assert newer == []
        assert after is not None
        assert after.sequence == during.sequence

    def test_a_failure_inside_a_block_leaves_nothing(self, memory: Memory, store: Store) -> None:
        """All commits of a block show or none: one that fails after it appended leaves the store as it was."""
        namespace = memory.remember("before", scope=Scope.USER).record.namespace
        before = everything(store, namespace)

        with pytest.raises(BlockError):
            append_and_fail(memory)
        failed = everything(store, namespace)
        memory.remember("after", scope=Scope.SESSION)

        assert failed == before
        assert everything(store, namespace) != before
        assert memory.verify().ok

    def test_the_head_row_is_the_newest_commit(self, memory: Memory, store: Store) -> None:
        """After each commit: its sequence, id and signature, and the frontier of the history before it."""
        frontier: tuple[bytes, ...] = ()
        for number in range(20):
            kept = memory.remember(f"note {number}", scope=Scope.USER)
            with store.read() as reader:
                row = reader.chain(kept.record.namespace)
                assert row is not None
                data = reader.header(row.number, kept.sequence)
            if number == 0:
                with store.read() as reader:
                    frontier = merkle.append((), 0, leaf_hash(reader.header(row.number, 0) or b""))[0]

            assert (row.sequence, row.commit, row.frontier) == (kept.sequence, kept.commit, frontier)
            assert merkle.root(frontier) == entries.decode_header(data or b"").history
            frontier = Head(row.commit, entries.decode_header(data or b""), row.frontier).grown

    def test_a_search_sees_index_and_tail(self, memory: Memory, store: Store) -> None:
        """The 256th position folds the words into the index, in the commit that reaches it; nothing is ever behind."""
        memory.remember_many([f"plum {number}" for number in range(FOLD_EVERY - 2)], scope=Scope.USER)
        number = user_chain(memory).number
        before = folded(store, number)

        last = memory.remember("fig and plum", scope=Scope.USER).record
        after = folded(store, number)
        tail = memory.remember("fig and pear", scope=Scope.USER).record

        found = {item.record.address for item in memory.recall("fig", mode=Mode.LEXICAL).items}
        assert before == (0, 0, [0, 0])
        assert after == (FOLD_EVERY, FOLD_EVERY - 1, [FOLD_EVERY - 1, 1])
        assert folded(store, number) == after
        assert found == {last.address, tail.address}
        assert memory.verify().ok

    def test_what_was_acknowledged_is_there_after_reopening(self, memory: Memory, location: Path) -> None:
        """A store that was closed opens again with all that it answered, and goes on from there."""
        kept = [memory.remember(f"note {number}", scope=Scope.USER).record for number in range(5)]
        memory.close()

        with open_memory(location, create=False) as again:
            found = [again.get(record.address) for record in kept]
            following = again.remember("one more", scope=Scope.USER)

            assert found == kept
            assert following.sequence == kept[-1].sequence + 1
            assert again.verify().ok

    def test_a_reader_does_not_wait_for_a_writer(self, memory: Memory, location: Path) -> None:
        """While somebody holds the write lock, others read what was committed before."""
        kept = memory.remember("before", scope=Scope.USER).record

        with open_memory(location, create=False) as other, memory._ledger.writes(OWNER) as block:
            block.batch(block.identity.target(Scope.SESSION))
            found = other.get(kept.address)
            bound = other.bound()

        assert found == kept
        assert "session" not in bound
        assert "session" in memory.bound()

    def test_writers_in_several_processes_lose_nothing(self, location: Path) -> None:
        """Four processes that make one store and write at once: no error, no loss, one linear chain."""
        writers = [process(remember_many, location, f"writer {number}") for number in range(WRITERS)]
        for writer in writers:
            writer.join()

        assert [writer.exitcode for writer in writers] == [0] * WRITERS
        with open_memory(location, create=False) as memory:
            texts = [record.text or "" for page in pages(memory) for record in page]
            checked = memory.verify()
            head = user_chain(memory).head
        assert sorted(texts) == sorted(f"writer {n} {i}" for n in range(WRITERS) for i in range(WRITES))
        assert checked.findings == ()
        assert head.sequence == WRITERS * WRITES


def folded(store: Store, number: int) -> tuple[int, int, list[int]]:
    """How far the index goes, how many records it holds, and how many of them hold plum and fig."""
    with store.read() as reader:
        corpus = reader.corpus(number)
        holding = [len(reader.postings(number, token(word), 999)) for word in ("plum", "fig")]
        return corpus.through, corpus.documents, holding


def everything(store: Store, namespace: str) -> object:
    """All canonical rows of the store chain and of one namespace, and the list of chains."""
    with store.read() as reader:
        names = [row.namespace for row in reader.chains()]
        rows = []
        for name in (names[0], namespace):
            chain = reader.chain(name)
            assert chain is not None
            headers = list(reader.headers(chain.number, newest=0, oldest=1 << 20))
            rows.append((chain, headers, list(reader.entries(chain.number, 0, 1 << 20))))
        return names, rows


def pages(memory: Memory) -> list[tuple[Record, ...]]:
    """Everything that is listed, page by page."""
    found = []
    cursor = None
    while True:
        page = memory.list_records("all", cursor=cursor, limit=100)
        found.append(page.items)
        cursor = page.cursor
        if cursor is None:
            return found
