"""The semantic lane: encoders as a plug, a static token table, vectors as a projection; without a network."""

from ledgerstone.semantic.encoders import Encoder, Function, Matcher
from ledgerstone.semantic.lane import Coverage, Indexed, Lane, Raised, coverage, index, raised
from ledgerstone.semantic.scorer import Scorer, judged
from ledgerstone.semantic.table import StaticTable, static_table

__all__ = [
    "Coverage",
    "Encoder",
    "Function",
    "Indexed",
    "Lane",
    "Matcher",
    "Raised",
    "Scorer",
    "StaticTable",
    "coverage",
    "index",
    "judged",
    "raised",
    "static_table",
]
