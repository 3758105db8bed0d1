"""The semantic lane: encoders as a plug, a static token table, vectors as a projection; without a network."""

from ledgerstone.semantic.encoders import Encoder, Function, Matcher
from ledgerstone.semantic.lane import Indexed, Lane, Matched, Raised, index, raised, search
from ledgerstone.semantic.table import StaticTable, static_table

__all__ = [
    "Encoder",
    "Function",
    "Indexed",
    "Lane",
    "Matched",
    "Matcher",
    "Raised",
    "StaticTable",
    "index",
    "raised",
    "search",
    "static_table",
]
