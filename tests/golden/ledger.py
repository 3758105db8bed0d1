"""The golden ledger in hand: its lines, the library's judgement of them, and copies that were tampered with."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from ledgerstone.core import canonical, chain, entries, merkle, signing
from ledgerstone.core.verify import Authorities, Replay, check_signature
from ledgerstone.errors import CorruptionError
from tests.golden.make import HERE, KEYS, PUBLIC

Line = dict[str, Any]
TEXT: Final = (HERE / "ledger.jsonl").read_text(encoding="utf-8")
STORE, PROJECT = dict.fromkeys(json.loads(line)["namespace"] for line in TEXT.splitlines()[1:])
TRUSTED: Final = (PUBLIC,)

Edit = Callable[[str, int, Line, list[Line]], None]
"""Changes the header and the entries of one commit, given its namespace and sequence."""


def lines() -> list[Line]:
    """The golden ledger's lines, to be changed at will."""
    return [json.loads(line) for line in TEXT.splitlines()]


def the(rows: list[Line], what: str, **where: Any) -> Line:
    """The one line of that sort and place; in the project's chain unless told otherwise."""
    wanted = {"line": what, "namespace": PROJECT, **where}
    (found,) = (row for row in rows if wanted.items() <= row.items())
    return found


def written(rows: list[Line]) -> list[str]:
    """The lines as text."""
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def replayed(rows: list[Line]) -> list[Replay]:
    """Every chain as the library replays it."""
    authorities = Authorities()
    names = list(dict.fromkeys(row["namespace"] for row in rows if "namespace" in row))
    return [_replay(rows, name, authorities, store=name == names[0]) for name in names]


def _replay(rows: list[Line], namespace: str, authorities: Authorities, *, store: bool) -> Replay:
    replay = Replay(namespace, authorities, store=store)
    signatures = {row["sequence"]: row["signature"] for row in rows if _is(row, "signature", namespace)}
    for sequence, data, bodies, contents in _commits(rows, namespace):
        found = replay.header(sequence, data)
        if found is None:
            break
        try:
            replay.commit(*found, bodies, contents)
        except CorruptionError as error:
            replay.find("chain", sequence, error.message)
            break
        if sequence in signatures:
            check_signature(replay, KEYS, *found, bytes.fromhex(signatures[sequence]))
    replay.finish()
    return replay


def _is(row: Line, what: str, namespace: str) -> bool:
    return (row["line"], row.get("namespace")) == (what, namespace)


def _commits(
    rows: list[Line], namespace: str
) -> Iterator[tuple[int, bytes, list[bytes], dict[int, tuple[bytes, bytes]]]]:
    """The commits of a chain: sequence, header, entries, and contents by position."""
    first = 0
    bodies = {row["position"]: row["entry"].encode() for row in rows if _is(row, "entry", namespace)}
    contents = {
        row["position"]: (bytes.fromhex(row["salt"]), row["content"].encode())
        for row in rows
        if _is(row, "content", namespace)
    }
    for row in rows:
        if _is(row, "commit", namespace):
            places = range(first, first + len(json.loads(row["header"])["entries"]))
            first = places.stop
            yield (
                row["sequence"],
                row["header"].encode(),
                [bodies[place] for place in places if place in bodies],
                {place: contents[place] for place in places if place in contents},
            )


def resealed(rows: list[Line], edit: Edit) -> list[Line]:
    """A copy whose commits were changed and all sealed anew, by somebody who has the key.

    Digests, parents, history, ids, points of the store chain and signatures fit again. Counts and state do not,
    unless the edit leaves them true.
    """
    rows = copy.deepcopy(rows)
    renamed: dict[str, str] = {}
    for namespace in (STORE, PROJECT):
        frontier: tuple[bytes, ...] = ()
        parent: str | None = None
        first = 0
        for row in [row for row in rows if _is(row, "commit", namespace)]:
            header = json.loads(row["header"])
            bodies = [
                the(rows, "entry", namespace=namespace, position=first + index)
                for index in range(len(header["entries"]))
            ]
            first += len(bodies)
            before = row["header"].encode()
            values = [json.loads(_renamed(body["entry"], renamed)) for body in bodies]
            header |= {"history": merkle.root(frontier).hex()} | ({} if parent is None else {"parent": parent})
            if "store" in header:
                header["store"]["id"] = renamed[header["store"]["id"]]
            edit(namespace, row["sequence"], header, values)
            for body, value in zip(bodies, values, strict=True):
                old = entries.digest_of(body["entry"].encode()).hex()
                body["entry"] = canonical.encode(value).decode()
                renamed[old] = entries.digest_of(body["entry"].encode()).hex()
            header["entries"] = [renamed[old] for old in header["entries"]]
            data = canonical.encode(header)
            commit = merkle.leaf_hash(data)
            renamed[merkle.leaf_hash(before).hex()] = parent = commit.hex()
            frontier, _ = merkle.append(frontier, row["sequence"], commit)
            row["header"] = data.decode()
            for signed in rows:
                if signed["line"] in {"signature", "head"} and (signed["namespace"], signed["sequence"]) == (
                    namespace,
                    row["sequence"],
                ):
                    signed["signature"] = KEYS.sign(signing.COMMIT, commit).hex()
                    if "id" in signed:
                        signed["id"] = commit.hex()
    return rows


def reworded(rows: list[Line], namespace: str, contents: dict[int, Line]) -> list[Line]:
    """A copy in which the contents at those positions have other fields (None: none), all of it sealed anew."""
    rows = copy.deepcopy(rows)
    sealed: dict[int, Line] = {}
    for position, fields in contents.items():
        line = the(rows, "content", namespace=namespace, position=position)
        said = {**json.loads(line["content"]), **fields}
        data = canonical.encode({name: value for name, value in said.items() if value is not None})
        line["content"] = data.decode()
        commitment = canonical.commitment(bytes.fromhex(line["salt"]), data).hex()
        size = len((said.get("text") or "").encode())
        sealed[position] = {"bytes": len(data), "commitment": commitment} | ({"text_bytes": size} if size else {})

    def edit(found: str, _: int, header: Line, bodies: list[Line]) -> None:
        first = header["counts"]["entries"] - len(bodies)
        for position, body in enumerate(bodies, first):
            if found == namespace and position in sealed:
                body["content"] = sealed[position]

    return resealed(rows, edit)


def _renamed(text: str, renamed: dict[str, str]) -> str:
    for old, new in renamed.items():
        text = text.replace(old, new)
    return text


def ids(namespace: str) -> list[str]:
    """The ids of a chain's commits in order."""
    return [chain.read(data)[0].hex() for _, data, _, _ in _commits(lines(), namespace)]


def heads(rows: list[Line]) -> dict[str, str]:
    """The id of every chain's newest commit, as its header's bytes make it."""
    return {
        namespace: chain.read(data)[0].hex()
        for namespace in (STORE, PROJECT)
        for _, data, _, _ in _commits(rows, namespace)
    }
