"""Promises of checkpoints and proofs: they hold for what is so, under the key that signed it, and for nothing else."""

from __future__ import annotations

import random
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ledgerstone.core import canonical, entries, fields, merkle, proofs, rules, state
from ledgerstone.core.proofs import Checkpoint, Commit, Opened, Proof, SignedHead
from ledgerstone.core.signing import COMMIT, Keyring, SigningKey
from ledgerstone.core.values import Draft, Kind, Origin, Retention, Standing, Status, Trust
from ledgerstone.errors import CorruptionError, UsageError
from tests.core.chains import ADA, KEYS, PROJECT, WRITE, Pen, project_chain, replay, writing

PUBLIC: Final = next(iter(KEYS.public.values()))
OTHER: Final = Keyring(SigningKey(seed=b"o" * 32, secret=b"p" * 32))
SALT: Final = bytes(32)


def opened(pen: Pen, position: int) -> Opened | None:
    """A content with its salt, wherever it stands in a chain."""
    found = [written.contents[position] for written in pen.commits if position in written.contents]
    return Opened(salt=found[0][0], content=found[0][1]) if found else None


def proof_of(pen: Pen, position: int, carried: tuple[int, ...] = ()) -> Proof:
    """The proof of a version, put together from a chain by hand; ``carried`` are the positions below it."""
    assert pen.head is not None
    bodies = [body for written in pen.commits for body in written.bodies]
    nodes: dict[tuple[int, int], bytes] = {}

    def keep(level: int, index: int, children: bytes) -> None:
        nodes[level, index] = children

    root = state.build(replay(pen).leaves(), keep)
    signed = entries.encode_header(replace(pen.head.header, state=root))
    known = pen.folded.known[position]
    ids = [merkle.leaf_hash(written.header) for written in pen.commits[:-1]]
    last = known.sequence == pen.head.sequence
    return Proof(
        entries=tuple(bodies[each] for each in (position, *carried)),
        position=position,
        path=tuple(nodes[level, position // 16 ** (level + 1)] for level in range(state.height(len(bodies)))),
        head=SignedHead(header=signed, signature=KEYS.sign(COMMIT, merkle.leaf_hash(signed))),
        commit=None
        if last
        else Commit(
            header=pen.commits[known.sequence].header,
            inclusion=tuple(merkle.inclusion_proof(ids, known.sequence)),
        ),
        ended_by=known.ended_by,
        ending=int(known.ending),
        content=opened(pen, (position, *carried)[-1]),
        reason=opened(pen, position) if carried else None,
    )


def prolonged() -> tuple[Pen, int]:
    """A chain of twenty notes, more than one node holds, and the position of the third."""
    pen = project_chain()
    known = [pen.remember(Draft(text=f"note {number}", key=f"k{number}")) for number in range(20)]
    return pen, known[2].position


def attested(proof: Proof) -> proofs.Attested:
    """What a stranger with the public key makes of a proof."""
    return proofs.verify_proof(proofs.make(proof), [PUBLIC])


def refused(proof: Proof) -> str:
    """The reason for which a stranger refuses a proof."""
    with pytest.raises(CorruptionError) as error:
        attested(proof)
    assert "keys show" in error.value.hint
    return error.value.message


def test_a_record_is_proven() -> None:
    """What a proof says of a record is what its chain says: text, who, when, and how it stands at which head."""
    pen, position = prolonged()

    found = attested(proof_of(pen, position))

    known = pen.folded.known[position]
    assert pen.head is not None
    assert found.content is not None
    assert (found.text, found.content.key, found.erased) == ("note 2", "k2", False)
    assert (found.address, found.digest) == (f"{known.memory}@1", known.digest)
    assert (found.status, found.standing, found.ended_by) == (Status.ACTIVE, Standing.CURRENT, None)
    assert (found.principal, found.grant, found.at) == (ADA, WRITE, pen.head.header.stamp.at)
    assert (found.namespace, found.sequence, found.head_sequence) == (PROJECT, 3, 20)
    assert found.commit == merkle.leaf_hash(pen.commits[3].header)
    assert (found.signer, found.public) == (KEYS.signer, PUBLIC)


def test_a_proof_says_what_a_record_says_of_itself() -> None:
    """Which memory and version it is, of what sort, from whom, how far to rely on it, and until when."""
    pen = project_chain()
    draft = Draft(text="Cedar.", kind=Kind.FACT, retention=Retention.WORKING, expires=7)
    known = pen.remember(draft, Origin.MODEL)

    found = attested(proof_of(pen, known.position))

    assert (found.memory, found.version, found.kind) == (known.memory, 1, Kind.FACT)
    assert (found.retention, found.expires, found.text_bytes) == (Retention.WORKING, 7, 6)
    assert (found.origin, found.trust) == (Origin.MODEL, Trust.MODEL_INFERRED)


def test_the_newest_record_is_proven_by_its_head_alone() -> None:
    """A record in the head itself needs no other commit; one in the first commit before it has no siblings."""
    pen = project_chain()
    first = pen.remember("first")

    found = attested(proof_of(pen, first.position))

    assert (found.text, found.commit) == ("first", found.head)


def test_a_record_without_its_text_is_proven() -> None:
    """Without contents all else is proven the same."""
    pen, position = prolonged()
    proof = proof_of(pen, position)

    bare = attested(replace(proof, content=None))

    assert (bare.text, bare.content, bare.erased, bare.text_bytes) == (None, None, False, 6)
    assert replace(attested(proof), content=None) == bare


def test_a_close_and_its_retraction_are_proven_with_their_text() -> None:
    """A version that carries a text on is proven with it, and with its reason if it has one."""
    pen = project_chain()
    task = pen.remember(Draft(text="water it", kind=Kind.TASK))
    closed = pen.write(rules.close(task, writing(), "it rained"))
    assert closed is not None
    withdrawn = pen.end(closed)

    done = attested(proof_of(pen, closed.position, (task.position,)))
    gone = attested(proof_of(pen, withdrawn.position, (closed.position, task.position)))

    assert (done.text, done.status, done.reason, done.version) == ("water it", Status.CLOSED, "it rained", 2)
    assert (done.standing, done.ended_by) == (Standing.RETRACTED, 3)
    assert (gone.text, gone.status, gone.reason, gone.version) == ("water it", Status.RETRACTED, None, 3)
    assert (gone.standing, gone.ended_by) == (Standing.RETRACTED, 3)


def test_an_erased_record_is_proven_to_be_erased() -> None:
    """The proof says which commit erased it and has no text; the text, kept elsewhere, is not taken with it."""
    pen, position = prolonged()
    before = proof_of(pen, position)
    pen.erase(pen.folded.known[position])
    after = proof_of(pen, position)

    found = attested(after)

    assert (found.text, found.erased, found.standing, found.ended_by) == (None, True, Standing.ERASED, 21)
    assert attested(before).text == "note 2"
    assert attested(proof_of(pen, position + 1)).text == "note 3"
    assert "erased" in refused(replace(after, content=before.content))


def test_only_a_trusted_key_counts() -> None:
    """Under another key, or none, nothing is proven; under several, one of which signed, it is."""
    pen, position = prolonged()
    data = proofs.make(proof_of(pen, position))

    assert proofs.verify_proof(data, [*OTHER.public.values(), PUBLIC]).public == PUBLIC
    for keys in ([], list(OTHER.public.values())):
        with pytest.raises(CorruptionError, match="no trusted key signed its head"):
            proofs.verify_proof(data, keys)
    wrong: list[Any] = [[PUBLIC[:-1]], [PUBLIC.hex()]]
    for keys in wrong:
        with pytest.raises(UsageError, match="public key: 32 bytes"):
            proofs.verify_proof(data, keys)


FORGED: Final[dict[str, tuple[Callable[[Proof, Pen], Proof], str]]] = {
    "another position": (lambda proof, _: replace(proof, position=proof.position + 1), "does not list"),
    "a position before its commit": (lambda proof, _: replace(proof, position=0), "does not list"),
    "another version's entry": (
        lambda proof, pen: replace(proof, entries=(pen.commits[4].bodies[0],)),
        "does not list",
    ),
    "another standing": (lambda proof, _: replace(proof, ended_by=9, ending=4, content=None), "another leaf"),
    "a shorter path": (lambda proof, _: replace(proof, path=proof.path[:1]), "a path of 2 nodes, not 1"),
    "a longer path": (lambda proof, _: replace(proof, path=(*proof.path, SALT)), "a path of 2 nodes, not 3"),
    "another node": (lambda proof, _: replace(proof, path=(SALT * 16, proof.path[1])), "not the one under the root"),
    "a node with fewer children": (lambda proof, _: replace(proof, path=(SALT, proof.path[1])), "bytes, not 32"),
    "another commit": (lambda proof, pen: replace(proof, commit=_commit(proof, pen.commits[4].header)), "history"),
    "no commit": (lambda proof, _: replace(proof, commit=None), "does not list"),
    "another text": (lambda proof, _: replace(proof, content=_content(b'{"format":1,"text":"x"}')), "not commit to"),
    "a reason of a record": (lambda proof, _: replace(proof, reason=proof.content), "a reason that no entry"),
    "an entry too many": (
        lambda proof, pen: replace(proof, entries=(*proof.entries, pen.commits[4].bodies[0])),
        "name",
    ),
}


def _commit(proof: Proof, header: bytes) -> Commit:
    assert proof.commit is not None
    return replace(proof.commit, header=header)


def _content(data: bytes) -> Opened:
    return Opened(salt=SALT, content=data)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_proof_is_refused(name: str) -> None:
    """Whatever one piece is exchanged for, the others give it away, by the reason of that name."""
    forge, reason = FORGED[name]
    pen, position = prolonged()

    message = refused(forge(proof_of(pen, position), pen))

    assert message.startswith("proof: ")
    assert reason in message


def test_only_versions_are_proven() -> None:
    """An entry that is no version of a memory, or whose text is left out below it, is refused."""
    pen = project_chain()
    task = pen.remember(Draft(text="water it", kind=Kind.TASK))
    closed = pen.end(task, close=True)
    proof = proof_of(pen, closed.position, (task.position,))

    assert attested(proof).status is Status.CLOSED
    assert "do not lead to a record" in refused(replace(proof, entries=proof.entries[:1], content=None))
    assert "not commit to" in refused(replace(proof, reason=_content(b'{"format":1,"reason":"x"}')))


def test_later_rules_are_refused() -> None:
    """A head of rules that this program does not know proves nothing to it."""
    pen = project_chain()
    first = pen.remember("first", rules=2)

    assert "made under rules 2" in refused(proof_of(pen, first.position))


MALFORMED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "no line's end": lambda data: data[:-1],
    "two line's ends": lambda data: data + b"\n",
    "nothing": lambda _: b"\n",
    "no object": lambda _: b"[]\n",
    "no format": lambda data: data.replace(b'"format":1,"head"', b'"head"'),
    "another format": lambda data: data.replace(b'"format":1,"head"', b'"format":true,"head"'),
    "another sort": lambda data: data.replace(b'"proof":"record"', b'"proof":"ledger"'),
    "an unknown field": lambda data: data[:-2] + b',"z":1}\n',
    "a field at its absent value": lambda data: data.replace(b',"entries":', b',"ended_by":0,"entries":'),
    "another spelling": lambda data: data.replace(b":", b": ", 1),
    "an empty text": lambda data: data.replace(b'"entries":["', b'"entries":["","'),
    "a number for a text": lambda data: data.replace(b'"entries":["', b'"entries":[1,"'),
    "half a node": lambda data: data.replace(b'"path":["', b'"path":["00'),
    "a number for a node": lambda data: data.replace(b'"path":["', b'"path":[1,"'),
    "no header": lambda data: data.replace(b'"head":{"header":"', b'"head":{"header":" '),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_proof_is_refused(name: str) -> None:
    """A proof has one form, to the byte."""
    pen, position = prolonged()
    data = proofs.make(proof_of(pen, position))
    malformed = MALFORMED[name](data)

    assert malformed != data
    with pytest.raises(CorruptionError, match="proof: "):
        proofs.verify_proof(malformed, [PUBLIC])


def test_no_byte_of_a_proof_can_be_flipped() -> None:
    """Bits turned here and there, never the same twice: each is refused."""
    pen, position = prolonged()
    data = proofs.make(proof_of(pen, position))
    chance = random.Random(0)

    for place in chance.sample(range(len(data)), 400):
        flipped = bytearray(data)
        flipped[place] ^= 1 << chance.randrange(8)
        with pytest.raises(CorruptionError):
            proofs.verify_proof(bytes(flipped), [PUBLIC])


def noted() -> tuple[Pen, str]:
    """A chain and its checkpoint."""
    pen = project_chain()
    pen.remember("first")
    assert pen.head is not None
    return pen, proofs.checkpoint(KEYS, pen.head)


def test_a_checkpoint_is_a_signed_note() -> None:
    """To the byte what c2sp.org/signed-note and c2sp.org/tlog-checkpoint say, put together by hand."""
    pen, note = noted()
    origin = f"ledgerstone/{PROJECT}"
    root = merkle.tree_root([merkle.leaf_hash(written.header) for written in pen.commits])

    text = f"{origin}\n2\n{b64encode(root).decode()}\n"

    body, _, line = note.partition("\n\u2014 ")
    name, signed = line.removesuffix("\n").split(" ")
    assert (body, name) == (text, origin)
    key_hash, signature = b64decode(signed)[:4], b64decode(signed)[4:]
    assert key_hash == sha256(origin.encode() + b"\n\x01" + PUBLIC).digest()[:4]
    Ed25519PublicKey.from_public_bytes(PUBLIC).verify(signature, text.encode())


def test_a_checkpoint_is_read_back() -> None:
    """Alone, after another one with and without an empty line, and with lines and signatures that are not ours."""
    pen, note = noted()
    expected = Checkpoint(PROJECT, 2, merkle.tree_root([merkle.leaf_hash(each.header) for each in pen.commits]))
    witness = f"\u2014 witness.example/w {b64encode(bytes(100)).decode()}\n"
    same_name = f"\u2014 ledgerstone/{PROJECT} {b64encode(bytes(68)).decode()}\n"

    def read(text: str) -> tuple[Checkpoint, ...]:
        return proofs.read_checkpoints(text.encode(), KEYS)

    assert read(note) == (expected,)
    assert read(note + note) == read(note + "\n" + note) == (expected, expected)
    assert read(note + witness + same_name) == (expected,)


def test_an_extension_line_is_passed_over() -> None:
    """More lines of text, signed with the rest, change nothing of what a checkpoint says."""
    _, note = noted()
    text = note.partition("\n\n")[0] + "\nmore\n"
    origin = f"ledgerstone/{PROJECT}".encode()
    signature = KEYS.sign(b"", text.encode())
    signed = b64encode(sha256(origin + b"\n\x01" + PUBLIC).digest()[:4] + signature).decode()

    found = proofs.read_checkpoints(f"{text}\n\u2014 {origin.decode()} {signed}\n".encode(), KEYS)

    assert found == proofs.read_checkpoints(note.encode(), KEYS)


BROKEN: Final[dict[str, Callable[[str], str]]] = {
    "nothing": lambda _: "",
    "a text without signatures": lambda note: note.partition("\u2014")[0],
    "cut": lambda note: note[:-1],
    "something after it": lambda note: note + "more\n",
    "a control character": lambda note: note.replace("\n2\n", "\n2\r\n"),
    "another origin": lambda note: note.replace("ledgerstone/ns_", "example.org/ns_"),
    "a size with a zero before it": lambda note: note.replace("\n2\n", "\n02\n"),
    "another size": lambda note: note.replace("\n2\n", "\n3\n"),
    "a root of fewer bytes": lambda note: note.replace("=\n\n", "\n\n"),
    "an other spelling of the root": lambda note: note.replace(*_last_letter(note.split("\n")[2])),
    "a signature that is no base64": lambda note: note[:-1] + "=\n",
    "a signature without its padding": lambda note: note[:-2] + "\n",
    "a signature of one word": lambda note: note + "\u2014 word\n",
    "another signature": lambda note: note[:-6] + ("AAAA" if note[-6:-2] != "AAAA" else "BBBB") + note[-2:],
    "a right and a wrong signature": lambda note: note + _wrong(note),
    "too long": lambda note: note + "\u2014 w AAAAAAAA\n" * (1 << 17),
}


def _last_letter(root: str) -> tuple[str, str]:
    """The last letter of a root's base64, and one that stands for the same bytes."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return root, root[:-2] + letters[letters.index(root[-2]) + 1] + "="


def _wrong(note: str) -> str:
    line = note.split("\n\n")[1]
    data = b64decode(line.split(" ")[2])
    return f"\u2014 {line.split(' ')[1]} {b64encode(data[:4] + bytes(64)).decode()}\n"


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_checkpoint_is_refused(name: str) -> None:
    """What is altered, cut, ill-formed or signed wrongly says nothing."""
    _, note = noted()
    broken = BROKEN[name](note)

    assert broken != note
    with pytest.raises(CorruptionError, match="checkpoint: "):
        proofs.read_checkpoints(broken.encode(), KEYS)


def test_a_checkpoint_of_another_key_is_refused() -> None:
    """It takes a trusted key to make one, and a signing key at all; bytes that are no text are none."""
    pen, note = noted()
    assert pen.head is not None

    with pytest.raises(CorruptionError, match="no trusted key"):
        proofs.read_checkpoints(note.encode(), OTHER)
    with pytest.raises(CorruptionError, match="not lines of text"):
        proofs.read_checkpoints(b"\xff", KEYS)
    with pytest.raises(UsageError, match="no signing key"):
        proofs.checkpoint(Keyring(pins=(PUBLIC,)), pen.head)


def test_proofs_are_canonical() -> None:
    """A proof is a line of canonical JSON, and made again of the same pieces it is the same."""
    pen, position = prolonged()
    data = proofs.make(proof_of(pen, position))

    assert canonical.encode(canonical.decode(data[:-1])) + b"\n" == data
    assert data == proofs.make(proof_of(pen, position))


def test_a_proof_is_one_line_within_its_limit() -> None:
    """Longer, or without its end, it is refused as no proof; at the limit it is read."""
    line = b"{" + b" " * (proofs.MAX_PROOF_BYTES - 2) + b"\n"

    for wrong in (b" " + line, line[:-1]):
        with pytest.raises(CorruptionError, match="not one line of") as refused:
            proofs.check(wrong, KEYS)
        assert "this is no proof" in refused.value.hint
    with pytest.raises(CorruptionError, match=r"proof: (?!not one line of)"):
        proofs.check(line, KEYS)


def test_a_content_in_a_proof_has_its_limit() -> None:
    """To the last byte."""
    most = 8 * 1_048_576

    assert len(fields.read_object(Opened, {"salt": "00" * 32, "content": "x" * most}, beside=0).content) == most
    with pytest.raises(ValueError, match=f"not a text of 1 to {most} bytes"):
        fields.read_object(Opened, {"salt": "00" * 32, "content": "x" * (most + 1)}, beside=0)
