"""How good one answer is, as numbers from 0 to 1, and how sure a difference between two runs is. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Final

RANKS: Final = (1, 5, 10)
SESSIONS: Final = 5
ROUNDS: Final = 2_000
CONFIDENCE: Final = 0.95


def recall(ranking: Sequence[str], gold: Collection[str], most: int) -> float:
    """The share of the gold among the first ``most``."""
    return len(set(gold) & set(ranking[:most])) / len(gold)


def reciprocal(ranking: Sequence[str], gold: Collection[str]) -> float:
    """One over the rank of the first gold document; 0 if none is there."""
    return next((1 / rank for rank, document in enumerate(ranking, 1) if document in gold), 0.0)


def ndcg(ranking: Sequence[str], gold: Collection[str], most: int) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002), gold counting 1 and all else 0."""
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, 1 + min(most, len(gold))))
    gain = sum(1 / math.log2(rank + 1) for rank, document in enumerate(ranking[:most], 1) if document in gold)
    return gain / ideal


def sessions(ranking: Sequence[str], gold: Collection[str], session: Mapping[str, str], most: int) -> float:
    """The share of the gold's sessions among the first ``most`` different sessions of a ranking."""
    shown = list(dict.fromkeys(session[document] for document in ranking))[:most]
    wanted = {session[document] for document in gold}
    return len(wanted & set(shown)) / len(wanted)


def complete(ranking: Sequence[str], gold: Collection[str], size: Mapping[str, int], most: int) -> float:
    """1 if all the gold is in when texts fill ``most`` bytes in their order, 0 otherwise.

    A text costs its bytes and one more; what no longer fits is skipped.
    """
    left, missing = most, set(gold)
    for document in ranking:
        if size[document] + 1 <= left:
            left -= size[document] + 1
            missing.discard(document)
    return float(not missing)


def scores(
    ranking: Sequence[str],
    held: Collection[str],
    gold: Collection[str],
    *,
    session: Mapping[str, str],
    size: Mapping[str, int],
    most: int,
) -> dict[str, float]:
    """All measures of one question: of a deep ranking, and of what one recall within ``most`` bytes held."""
    near = sessions(ranking, gold, session, SESSIONS)
    return {
        **{f"r@{rank}": recall(ranking, gold, rank) for rank in RANKS},
        "mrr": reciprocal(ranking, gold),
        "ndcg@10": ndcg(ranking, gold, 10),
        "session@1": float(sessions(ranking, gold, session, 1) > 0),
        f"session@{SESSIONS}": float(near > 0),
        f"sessions@{SESSIONS}": float(near == 1),
        f"full@{most}": complete(ranking, gold, size, most),
        f"held@{most}": float(set(gold) <= set(held)),
    }


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every measure over all questions."""
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def interval(differences: Sequence[float], *, seed: int = 1, rounds: int = ROUNDS) -> tuple[float, float]:
    """The paired bootstrap interval (Efron, 1979) of a mean difference: 95 % of resampled means lie in it."""
    chance = random.Random(seed)
    drawn = sorted(fmean(chance.choices(differences, k=len(differences))) for _ in range(rounds))
    beyond = int(rounds * (1 - CONFIDENCE) / 2)
    return drawn[beyond], drawn[rounds - 1 - beyond]
