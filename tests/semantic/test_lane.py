"""Promises of the semantic lane: it orders what may be recalled, says when it is behind, and breaks nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ledgerstone import Caller, Draft, Memory, Origin, UnavailableError, UsageError
from ledgerstone.core.words import query_words
from ledgerstone.search import OWN, Sieve, search
from ledgerstone.semantic import Function, Lane, lane, static_table
from ledgerstone.store import open_store
from tests.semantic.matching import Matched, match
from tests.stores import KEYS, OWNER, START, clock, open_memory, plain_client

NOTES = (
    "My physician is called Ruth Adler.",
    "The bridge over the river is closed until May.",
    "We buy bread on Saturdays.",
    "The deployment failed because a certificate had run out.",
)


class Corner:
    """A store with an encoder at work, and one namespace to search."""

    def __init__(self, path: Path, lane: Lane) -> None:
        self.path = path
        self.lane = lane
        self.memory = Memory.open(path, keys=KEYS, caller=OWNER, state=None, create=True, semantic=lane, clock=clock())

    def remember(self, *texts: str) -> list[str]:
        """Notes of the project; their addresses."""
        return [one.record.address for one in self.memory.remember_many([Draft(text=text) for text in texts])]

    def found(self, query: str, *, floor: int = 0, limit: int = 8) -> Matched:
        """What the lane makes of what words find."""
        with self.memory._ledger.reads(OWNER) as (reading, identity):
            [(where, _)] = [one for one in identity.visible()[0] if one[1].scope.value == "project"]
            sieve = Sieve(floor, START)
            words = dict.fromkeys(query_words(query, None), OWN)
            hits = search(reading.reader, where.number, words, sieve, limit=100).hits
            return match(reading.reader, where.number, query, hits, sieve, lane=self.lane, limit=limit)

    def texts(self, query: str, **asked: int) -> list[str]:
        """The texts of what is found."""
        hits = self.found(query, **asked).hits
        with self.memory._ledger.reads(OWNER) as (reading, identity):
            [(where, place)] = [one for one in identity.visible()[0] if one[1].scope.value == "project"]
            return [reading.record(where, place.scope, hit.position).text or "" for hit in hits]


@pytest.fixture
def corner(tmp_path: Path) -> Iterator[Corner]:
    """A store with the static table."""
    made = Corner(tmp_path / "store.db", Lane(static_table))
    yield made
    made.memory.close()


def test_meaning_finds_what_no_word_does(corner: Corner) -> None:
    """Asked for a doctor, the note on a physician comes first; words alone find nothing."""
    corner.remember(*NOTES)

    assert corner.texts("who is the doctor")[0] == NOTES[0]
    assert corner.found("who is the doctor").notices == ()


def test_words_lead(corner: Corner) -> None:
    """A note that holds the query's word stands before one that only means it."""
    corner.remember("The doctor asked for the old file.", *NOTES)

    found = corner.texts("doctor")

    assert found[0].startswith("The doctor")
    assert NOTES[0] in found


@pytest.mark.parametrize("weight", [200, 600, 1000])
def test_encoder_says_what_closeness_counts(tmp_path: Path, weight: int) -> None:
    """The closest of all has no word of the query, and gains the encoder's part of the best score by words."""

    def likes_bread(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] if text == "Elbe" or "bread" in text else [0.0, 1.0] for text in texts]

    corner = Corner(tmp_path / "store.db", Lane(lambda: Function(likes_bread, "bread", "1", 2, weight)))
    corner.remember("Where is the Elbe?", *NOTES)
    with corner.memory._ledger.reads(OWNER) as (reading, identity):
        [(where, _)] = [one for one in identity.visible()[0] if one[1].scope.value == "project"]
        [best] = search(
            reading.reader, where.number, dict.fromkeys(query_words("Elbe", None), OWN), Sieve(0, START), limit=8
        ).hits
    scores = dict(zip(corner.texts("Elbe"), (hit.score for hit in corner.found("Elbe").hits), strict=True))
    corner.memory.close()

    assert scores[NOTES[2]] == best.score * weight // 1000


def test_answer_is_the_same_before_and_after_indexing(corner: Corner) -> None:
    """A vector counts the same whether it was kept or made for the search; scores and order are equal."""
    corner.remember(*NOTES)
    before = corner.found("broken rollout")

    done = corner.memory.index_vectors()

    assert done == (len(NOTES), 0)
    assert corner.found("broken rollout") == before
    assert corner.memory.index_vectors() == (0, 0)


def test_lane_says_how_much_is_not_indexed_yet(tmp_path: Path) -> None:
    """Above what a search encodes itself it is behind, and says so in numbers; indexing catches up, bit by bit."""
    behind = Corner(tmp_path / "store.db", Lane(static_table, fresh=1))
    behind.remember(*NOTES)

    assert behind.found("doctor").notices == ("semantic: degraded: 3 of 4 not yet indexed; run: ledgerstone index",)
    assert behind.memory.index_vectors(2) == (2, 2)
    assert behind.found("doctor").notices == ("semantic: degraded: 1 of 4 not yet indexed; run: ledgerstone index",)
    assert behind.memory.index_vectors() == (2, 0)
    assert behind.found("doctor").notices == ()
    behind.memory.close()


@pytest.mark.parametrize(("fresh", "offence"), [("x", "str"), (True, "bool"), (-1, "-1"), (None, "NoneType")])
def test_how_many_texts_a_search_may_encode_is_a_number(fresh: int, offence: str) -> None:
    """Anything else is refused when the lane is made; none at all is a number too."""
    with pytest.raises(UsageError, match=f"fresh: a whole number of texts, not {offence}"):
        Lane(static_table, fresh=fresh)

    assert Lane(static_table, fresh=0).fresh == 0


def test_what_may_not_be_recalled_is_never_found(corner: Corner) -> None:
    """Superseded, retracted, erased, or below the floor: closeness changes nothing; its neighbour is found."""
    old = corner.memory.remember(Draft(text="The physician is Ruth.", key="doctor")).record.address
    corner.memory.remember(Draft(text="The physician is Paul.", key="doctor"))
    [gone, wrong, *_] = corner.remember("A physician called Ida.", "A physician called Max.", *NOTES[1:])
    model = corner.memory.bind(
        Caller(principal="local:ada", origin=Origin.EXTERNAL, session="x", project=OWNER.project)
    )
    model.remember(Draft(text="A physician called Eve."))
    corner.memory.index_vectors()
    corner.memory.retract(wrong, reason="a test")
    corner.memory.forget(gone, reason="a test", dry_run=False)

    assert old.endswith("@1")
    assert corner.texts("doctor", floor=3) == ["The physician is Paul."]
    assert set(corner.texts("doctor")) == {"The physician is Paul.", "A physician called Eve."}


def test_erasure_takes_the_vector_with_it(corner: Corner) -> None:
    """No byte of the vector stays in the store's files; the vector beside it does."""
    [gone, kept] = corner.remember(NOTES[0], NOTES[1])
    corner.memory.index_vectors()
    vectors = corner.lane.encode([NOTES[0], NOTES[1]])
    assert all(_held(corner.path, vector) for vector in vectors)

    corner.memory.forget(gone, reason="a test", dry_run=False)

    assert not _held(corner.path, vectors[0])
    assert _held(corner.path, vectors[1])
    assert corner.memory.verify().ok
    assert kept


def test_text_that_was_erased_while_it_was_encoded_gets_no_vector(tmp_path: Path) -> None:
    """A batch that was read before an erasure and kept after it leaves nothing of the erased text."""
    memories: list[Corner] = []
    targets: list[str] = []

    def slow(texts: Sequence[str]) -> list[list[float]]:
        if targets:
            memories[0].memory.forget(targets.pop(), reason="a test", dry_run=False)
        return [[1.0, float(len(text))] for text in texts]

    corner = Corner(tmp_path / "store.db", Lane(lambda: Function(slow, "slow", "1", 2)))
    memories.append(corner)
    targets += corner.remember(NOTES[0], NOTES[1])[:1]

    corner.memory.index_vectors()

    assert corner.memory.verify().ok
    _, erased, kept = (
        plain_client(corner.path).execute("SELECT body FROM vector").get[at : at + 2] for at in (0, 2, 4)
    )
    assert erased == bytes(2) != kept
    corner.memory.close()


class Weighing:
    """An encoder that matches nothing, and keeps what the words of a query weigh."""

    name, version, dimension = "weighing", "1", 2

    def __init__(self, matched: Callable[[int], list[int]] = lambda count: [0] * count) -> None:
        self.weights: dict[str, int] = {}
        self._matched = matched

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """The same for every text."""
        return [[1.0, 0.0] for _ in texts]

    def match(self, query: str, texts: Sequence[str], weigh: Callable[[Sequence[str]], Sequence[int]]) -> list[int]:
        """Nothing, or whatever was asked for."""
        self.weights = dict(zip(query.split(), weigh(query.split()), strict=True))
        return self._matched(len(texts))


def test_word_weighs_by_how_rare_it_is_in_the_store(tmp_path: Path) -> None:
    """The rarer the heavier, folded into the index or not; stop words and signs weigh nothing beside others."""
    encoder = Weighing()
    corner = Corner(tmp_path / "store.db", Lane(lambda: encoder))
    corner.remember(*(f"bread number {number}" for number in range(250)))
    corner.remember(*(f"bread number {number}" for number in range(30)), "bread and rain")

    corner.found("what ' s the bread rain ?")

    assert encoder.weights["rain"] > encoder.weights["bread"] > 0
    assert {word for word, weight in encoder.weights.items() if not weight} == {"what", "'", "s", "the", "?"}
    corner.memory.close()


def test_stop_words_weigh_where_nothing_else_remains(tmp_path: Path) -> None:
    """As with words: a query of nothing but stop words is asked with them."""
    encoder = Weighing()
    corner = Corner(tmp_path / "store.db", Lane(lambda: encoder))
    corner.remember(*NOTES)

    corner.found("who is it")

    assert all(encoder.weights.values())
    corner.memory.close()


def test_matches_that_are_none_are_not_taken(tmp_path: Path) -> None:
    """Too few, or not whole numbers: what was found before stands, and a notice says so."""
    corner = Corner(tmp_path / "store.db", Lane(lambda: Weighing(lambda _: [])))
    corner.remember(*NOTES)

    assert corner.texts("bridge")[0] == NOTES[1]
    assert "0 matches for 1 texts" in corner.found("bridge").notices[0]
    corner.memory.close()


@pytest.mark.parametrize(
    ("encode", "said"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda texts: [[1.0]] * len(texts), "not a vector of 2 finite numbers"),
        (lambda _: [], "0 vectors for "),
    ],
    ids=["raises", "dimension", "count"],
)
def test_failing_encoder_leaves_what_words_found_and_says_so(
    tmp_path: Path, encode: Callable[[Sequence[str]], list[list[float]]], said: str
) -> None:
    """Nothing is raised through a search; an indexing that was asked for is refused with the reason."""
    corner = Corner(tmp_path / "store.db", Lane(lambda: Function(encode, "failing", "1", 2)))
    corner.remember(*NOTES)

    assert corner.texts("bridge") == [NOTES[1]]
    [notice] = corner.found("bridge").notices
    assert notice.startswith("semantic: unavailable: ")
    assert said in notice
    with pytest.raises(UnavailableError, match=said):
        corner.memory.index_vectors()
    corner.memory.close()


def test_model_that_is_not_there_degrades_with_a_notice(tmp_path: Path) -> None:
    """What cannot even be loaded, a missing package too, is named."""

    def missing() -> Function:
        raise ModuleNotFoundError("no", name="numpy")

    corner = Corner(tmp_path / "store.db", Lane(missing))
    corner.remember(*NOTES)

    assert corner.texts("bridge") == [NOTES[1]]
    assert corner.found("bridge").notices == (
        "semantic: unavailable: numpy is not installed; from the checkout: pip install '.[semantic]'",
    )
    corner.memory.close()


def test_an_extra_is_named_for_what_it_brings_alone(tmp_path: Path) -> None:
    """What a caller's own encoder misses is named, and no extra of ours that would not bring it."""

    def missing() -> Function:
        raise ModuleNotFoundError("no", name="torch.nn")

    corner = Corner(tmp_path / "store.db", Lane(missing))
    corner.remember(*NOTES)

    assert corner.found("bridge").notices == ("semantic: unavailable: torch.nn is not installed",)
    corner.memory.close()


def test_a_number_of_texts_to_index_is_not_negative(corner: Corner) -> None:
    """It is refused with the offence; none at all is a number too."""
    corner.remember(*NOTES)

    with pytest.raises(UsageError, match="limit: 0 or more texts, not -1"):
        corner.memory.index_vectors(-1)

    assert corner.memory.index_vectors(0) == (0, len(NOTES))


def test_vectors_of_another_model_are_not_compared(tmp_path: Path) -> None:
    """They are named, and replaced when indexing is asked for, never by a search."""
    path = tmp_path / "store.db"
    corner = Corner(path, Lane(static_table))
    corner.remember(*NOTES)
    corner.memory.index_vectors()
    corner.memory.close()
    lengths = Lane(lambda: Function(lambda texts: [[1.0, float(len(text))] for text in texts], "length", "1", 2))
    memory = Memory.open(path, keys=KEYS, caller=OWNER, state=None, semantic=lengths, clock=clock(START * 2))
    corner.memory, corner.lane = memory, lengths

    assert "the vectors here are of static-minilm/" in corner.found("bridge").notices[0]
    assert memory.index_vectors() == (4, 0)
    assert corner.found("bridge").notices == ()
    assert memory.verify().ok
    memory.close()


def test_above_the_limit_only_what_words_found_is_compared(corner: Corner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large namespace takes its candidates from words, and says so; meaning orders them all the same."""
    corner.remember("The doctor of the bridge.", *NOTES)
    corner.memory.index_vectors()
    everything = corner.texts("doctor")
    monkeypatch.setattr(lane, "COMPARED", 3)

    found = corner.found("doctor")

    assert len(everything) > 1 == len(found.hits)
    assert found.notices == ("semantic: above 3 entries only what words found is compared",)
    assert corner.texts("surgeon") == []


def test_query_without_any_piece_changes_nothing(corner: Corner) -> None:
    """Nothing was asked: what words found stands, without a notice."""
    corner.remember(*NOTES)

    assert corner.found("") == ([], ())


@pytest.mark.parametrize("limit", [3, 10**9], ids=["large", "small"])
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE vector SET body = substr(body, 2)",
        "UPDATE vector SET row = row + 1",
        "DELETE FROM vector",
        "UPDATE vectored SET dimension = 0",
        "UPDATE vectored SET dimension = -1",
        "UPDATE vectored SET dimension = 255",
        "UPDATE vectored SET through = through - 1",
        "UPDATE vectored SET through = 1 << 40",
    ],
    ids=["short", "moved", "gone", "nothing wide", "less than that", "narrow", "behind", "ahead"],
)
def test_damaged_vectors_are_noticed_found_by_verify_and_dropped_by_rebuild(
    corner: Corner, monkeypatch: pytest.MonkeyPatch, edit: str, limit: int
) -> None:
    """Words still find; verify names the vectors; after a rebuild they can be made anew."""
    corner.remember(*NOTES)
    corner.memory.index_vectors()
    plain_client(corner.path).execute(edit)
    monkeypatch.setattr(lane, "COMPARED", limit)

    assert corner.texts("bridge")[0] == NOTES[1]
    assert [finding.code for finding in corner.memory.verify().findings] == ["vectors"]
    corner.memory.rebuild()
    assert corner.memory.verify().ok
    assert corner.memory.index_vectors() == (4, 0)
    assert NOTES[0] in corner.texts("doctor") or limit == 3


def test_vector_where_no_words_are_is_found_by_verify(corner: Corner) -> None:
    """A vector planted for an erased text is not taken for one of a record."""
    [gone, _] = corner.remember(NOTES[0], NOTES[1])
    corner.memory.index_vectors()
    corner.memory.forget(gone, reason="a test", dry_run=False)
    assert corner.memory.verify().ok

    plain_client(corner.path).execute("UPDATE vector SET body = CAST(replace(hex(body), '00', '01') AS BLOB)")

    assert not corner.memory.verify().ok


def test_indexing_in_two_programs_keeps_each_vector_once(tmp_path: Path) -> None:
    """Whoever comes second drops its batch, and goes on from where the first one got to."""
    others: list[Memory] = []

    def racing(texts: Sequence[str]) -> list[list[float]]:
        if others:
            others.pop().index_vectors()
        return [[1.0, float(len(text))] for text in texts]

    path = tmp_path / "store.db"
    corner = Corner(path, Lane(lambda: Function(racing, "racing", "1", 2)))
    corner.remember(*NOTES)
    other = Memory.open(path, keys=KEYS, caller=OWNER, state=None, semantic=corner.lane, clock=clock(START * 2))
    others.append(other)

    assert corner.memory.index_vectors() == (0, 0)
    assert corner.memory.verify().ok
    assert len(plain_client(path).execute("SELECT body FROM vector").get) == 2 * (len(NOTES) + 1)
    other.close()
    corner.memory.close()


def test_many_batches_reach_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches end where they end, within a block of vectors or at its border."""
    monkeypatch.setattr(lane, "INDEX_BATCH", 7)
    corner = Corner(tmp_path / "store.db", Lane(lambda: Function(_lengths, "length", "1", 2), fresh=0))
    corner.remember(*(f"note {number} {'x' * number}" for number in range(150)))

    assert corner.memory.index_vectors() == (150, 0)
    assert len(corner.found("note", limit=200).hits) == 150
    assert corner.memory.verify().ok
    corner.memory.close()


def test_store_without_an_encoder_has_nothing_to_index(tmp_path: Path) -> None:
    """Asked for vectors, a memory that was opened without an encoder says how to open one."""
    with open_memory(tmp_path / "store.db") as memory, pytest.raises(UsageError, match="without one"):
        memory.index_vectors()


def _lengths(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, float(len(text))] for text in texts]


def _held(path: Path, vector: bytes) -> bool:
    """Whether any piece of a vector is in a store's files."""
    store = open_store(path)
    try:
        data = b"".join(file.read_bytes() for file in store.files())
    finally:
        store.close()
    return any(vector[start : start + 16] in data for start in range(0, len(vector), 16))
