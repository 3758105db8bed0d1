"""The gate of the semantic lane: it lowers nothing on the notes that are measured here."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from bench.quality import sets
from bench.quality.measuring import CALLER, KEYS, NOW, fill
from bench.quality.scoring import recall

from ledgerstone import Memory
from ledgerstone.core.words import query_words
from ledgerstone.search import OWN, Hit, Sieve, search
from ledgerstone.semantic import Lane, static_table
from tests.semantic.matching import match

NOTES = Path(__file__).parent.parent.parent / "bench/quality/notes.jsonl"
MOST = 10


def test_lane_finds_more_of_our_own_notes_than_words_alone(tmp_path: Path) -> None:
    """Of the first ten, over all questions: meaning beside words brings back more than words, and ranks it higher."""
    [store] = sets.read(NOTES).stores
    lane = Lane(static_table)
    by_words: list[tuple[float, float]] = []
    by_both: list[tuple[float, float]] = []
    with Memory.open(
        tmp_path / "store.db", keys=KEYS, caller=CALLER, state=None, create=True, semantic=lane, clock=lambda: NOW
    ) as memory:
        names = fill(memory, store.documents)
        memory.index_vectors()
        with memory._ledger.reads(CALLER) as (reading, identity):
            [(where, place)] = identity.visible()[0]
            sieve = Sieve(0, NOW)

            def ids(hits: list[Hit]) -> list[str]:
                found = [reading.record(where, place.scope, hit.position).address for hit in hits[:MOST]]
                return [names[address] for address in found]

            for question in store.questions:
                words = dict.fromkeys(query_words(question.text, None), OWN)
                lexical = search(reading.reader, where.number, words, sieve, limit=192).hits
                both = match(reading.reader, where.number, question.text, lexical, sieve, lane=lane, limit=MOST)
                assert both.notices == ()
                for rows, ranking in ((by_words, ids(lexical)), (by_both, ids(both.hits))):
                    rows.append((recall(ranking, question.gold, MOST), recall(ranking, question.gold, 1)))

    for measure in (0, 1):
        assert fmean(row[measure] for row in by_both) > fmean(row[measure] for row in by_words)
