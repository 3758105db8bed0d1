"""Promises of the words that a text is found by."""

from __future__ import annotations

import sys
from unicodedata import category, normalize

import apsw
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core.words import (
    ANALYZER,
    MAX_QUERY_WORDS,
    MAX_WORD_CHARACTERS,
    STOP_WORDS,
    characters,
    index_words,
    postings,
    query_words,
    telling,
    token,
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
# Dense in what the analyzer treats specially, which random Unicode hardly ever meets.
knotty = st.text("abAB09_-./:@+#'’ сСё中国กํ가é\u0301\u200b½ﬁ，…", max_size=30)

EVERY_CHARACTER = [chr(code) for code in range(0x80, sys.maxunicode + 1)]


def matching(word: str, rows: list[list[str]]) -> list[int]:
    """The rows of a real FTS5 index, as the backends declare it, that hold a word."""
    database = apsw.Connection(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE p USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii')"
    )
    database.executemany("INSERT INTO p(rowid, words) VALUES (?, ?)", enumerate(map(postings, rows)))
    found = database.execute("SELECT rowid FROM p WHERE p MATCH ? ORDER BY rowid", [f'"{token(word)}"'])
    return [row for (row,) in found]


def test_analyzer_names_stemmer_and_version() -> None:
    """An index made by another stemmer can be told apart and rebuilt."""
    assert ANALYZER.startswith("words/2 ")
    assert Stemmer.version() in ANALYZER


@pytest.mark.parametrize(
    ("text", "tells"), [("the cedar", True), ("the", False), ("или", False), ("?!", False), ("", False)]
)
def test_a_text_tells_by_a_word_that_is_no_stop_word(text: str, tells: bool) -> None:
    """What a query could call it by is there or not."""
    assert telling(text) is tells


def test_words_come_in_order_and_with_repeats() -> None:
    """Frequencies can be counted from what indexing gives."""
    text = "Red fox, red fox; blue fox."

    words = index_words(text)

    assert words == ["red", "fox", "red", "fox", "blue", "fox"]


@pytest.mark.parametrize("text", ["", " \n\t", "... -- !?", "___", "🎉", "\u200b", "\x01"])
def test_text_without_words_gives_none(text: str) -> None:
    """Nothing to be found by is no words, not an empty word."""
    assert index_words(text) == []
    assert query_words(text) == []
    assert postings(index_words(text)) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("ﬁne ＡＢＣ", "fine abc"),
        ("caf\u00e9", "cafe\u0301"),
        ("cre\u200bdit so\u00adft \ufeffmark\ufe0f", "credit soft mark"),
        ("don’t", "don't"),
        ("cedar\u2010582", "cedar-582"),
        ("cedar\u2011582", "cedar-582"),
        ("ｗｏｒｄｓ．ｐｙ", "words.py"),
        ("5㎏ of Python™", "5 kg of python tm"),
        ("Елка", "ёлка"),
    ],
)
def test_forms_of_one_word_meet(one: str, other: str) -> None:
    """Case, compatibility forms, composition, invisible characters and typography make no difference."""
    assert index_words(one) == index_words(other)


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("running Runs", ["run", "run"]),
        ("компьютеры компьютера", ["компьютер", "компьютер"]),
        ("naïvely", ["naïv"]),
        ("ελληνικά", ["ελληνικά"]),
        ("हिन्दी", ["हिन्दी"]),
        ("Ann's we'll DON'T", ["ann", "we", "don"]),
        ("O'Brien d'être", ["o", "brien", "d", "être"]),
    ],
)
def test_words_are_stemmed_by_their_alphabet(text: str, stems: list[str]) -> None:
    """Latin is stemmed as English, Cyrillic as Russian; marks stay in their word; English clitics go."""
    assert index_words(text) == stems


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cedar-582", "cedar-582 cedar 582"),
        ("foo_bars", "foo_bars foo bar"),
        ("a.b.c", "a.b.c a b c"),
        ("src/x/words.py", "src/x/words.py src x words.py word py"),
        ("src/foo_bar.py", "src/foo_bar.py src foo_bar.py foo_bar foo bar py"),
        ("C:\\temp", "c:\\temp c temp"),
        (
            "https://example.org/a?q=1#top",
            "https://example.org/a?q=1#top https example.org exampl org a q 1 top",
        ),
        ("jo.b@example.org", "jo.b@example.org jo.b jo b example.org exampl org"),
        ("getUserName", "getusernam get user name"),
        ("HTTPServer", "httpserver http server"),
        ("utf8Decode B2B", "utf8decod utf8 decod b2b"),
        ("3.51.3", "3.51.3 3 51 3"),
        ("python-3.11.2", "python-3.11.2 python 3.11.2 3 11 2"),
        ("std::vector", "std::vector std vector"),
        ("__init__", "__init__ init"),
        ("C++ c# F#.", "c++ c c# c f# f"),
        ("(see `foo_bar`)", "see foo_bar foo bar"),
        ("版本3.51.3的", "版 本 版本 3.51.3 3 51 3 的"),
    ],
)
def test_identifier_counts_whole_and_in_parts(name: str, words: str) -> None:
    """A name is found as it was written and by each part; only what has no punctuation is stemmed."""
    assert index_words(name) == words.split(" ")


@pytest.mark.parametrize(
    ("text", "indexed", "asked"),
    [
        ("日本語", "日 本 語 日本 本語", "日本 本語"),
        ("カナ", "カ ナ カナ", "カナ"),
        ("ｶﾞ", "ガ", "ガ"),
        ("서울에서", "서 울 에 서 서울 울에 에서", "서울 울에 에서"),
        ("ไทย", "ไ ท ย ไท ทย", "ไท ทย"),
        ("ລາວ", "ລ າ ວ ລາ າວ", "ລາ າວ"),
        ("ខ្មែរ", "ខ ្ ម ែ រ ខ្ ្ម មែ ែរ", "ខ្ ្ម មែ ែរ"),
        ("𠀀𠀁", "𠀀 𠀁 𠀀𠀁", "𠀀𠀁"),
        ("中", "中", "中"),
        ("用Python编程", "用 python 编 程 编程", "用 python 编程"),
    ],
)
def test_scripts_without_spaces_give_pairs(text: str, indexed: str, asked: str) -> None:
    """A run is indexed by characters and pairs, and looked up by pairs unless it is one character long."""
    assert index_words(text) == indexed.split(" ")
    assert query_words(text) == asked.split(" ")


def test_long_word_keeps_its_first_characters() -> None:
    """A word is cut at the limit, so that a blob stays one short word; the limit itself is kept whole."""
    longest, longer = "0" * MAX_WORD_CHARACTERS, "0" * (MAX_WORD_CHARACTERS + 1)

    words = index_words(f"{longest} {longer} x-{longer} é{longer}")

    assert words == [longest, longest, f"x-{longest[2:]}", "x", longest, f"é{longest[1:]}"]


def test_stop_words_are_left_out_of_a_query() -> None:
    """A query is looked up by its telling words, and stop words are still indexed."""
    text = "Where is the rollback described, и где откат?"

    words = query_words(text)

    assert words == ["rollback", "describ", "откат"]
    assert "the" in index_words(text)


def test_query_of_stop_words_only_keeps_them() -> None:
    """Something is always looked up."""
    assert query_words("To be or not to be") == ["to", "be", "or", "not"]


def test_months_and_countries_are_no_stop_words() -> None:
    """A word with a telling meaning beside the common one is looked up."""
    assert query_words("in May in the US") == ["may", "us"]


def test_query_words_are_unique_and_limited() -> None:
    """Equal stems are looked up once, the first 32 unless the caller asks for all or for fewer."""
    text = " ".join(f"w{n} w{n}" for n in range(40))

    every = query_words(text, None)

    assert every == [f"w{n}" for n in range(40)]
    assert query_words(text) == every[:MAX_QUERY_WORDS]
    assert query_words(text, 3) == every[:3]


def test_han_characters_of_pairs_are_told_apart() -> None:
    """Each once, in order, less those that are words already; Latin, Kana, Hangul and Thai have none."""
    asked = query_words("\u97f3\u4e50\u8bfe\u3002\u4e50 tune \U00020000\u3402", None)

    assert characters(asked) == ["\u97f3", "\u8bfe", "\U00020000", "\u3402"]
    assert characters(query_words("caf\u00e9 \u304a\u3061\u3083 \ud55c\uad6d \u0e19\u0e49\u0e33")) == []


def test_stop_words_are_as_cutting_gives_them() -> None:
    """Each stop word is one folded word, so that every entry of the list has an effect."""
    assert all(query_words(f"{word} telling") == ["tell"] for word in STOP_WORDS)


def test_syntax_of_a_full_text_engine_is_only_words() -> None:
    """Quotes, operators and column filters in a query mean nothing."""
    assert query_words('words:"red fox" NEAR(cat* -dog) ^AND') == ["word", "red", "fox", "near", "cat", "dog"]


def test_a_word_with_a_mark_in_it_has_a_stem() -> None:
    """As one without: a mark is no punctuation."""
    assert index_words("за\u0301писи") == ["за\u0301пис"]


def test_a_sign_within_a_letter_parts_words() -> None:
    """As it does on its own: some letters are a letter and a sign in their compatibility form."""
    assert index_words("co\u0140lega") == index_words("col\u00b7lega") == ["col", "lega"]


def test_marks_stay_in_their_word() -> None:
    """No combining mark of all Unicode parts a word, unless its script has no spaces and it counts itself."""
    marks = [character for character in EVERY_CHARACTER if category(character).startswith("M")]

    words = {mark: index_words(f"ж{mark}ж") for mark in marks}

    assert len(marks) > 2000
    assert all(len(found) == 1 or found == ["ж", mark, "ж"] for mark, found in words.items())
    assert sum(len(found) == 1 for found in words.values()) > 2000


def test_signs_part_words() -> None:
    """No punctuation, symbol or space of all Unicode becomes part of a word without punctuation."""
    signs = [character for character in EVERY_CHARACTER if category(character)[0] in "PSZ"]

    glued = [sign for sign in signs if len(index_words(f"ж{sign}ж")) == 1]

    assert len(signs) > 8000
    assert glued == []


def test_long_run_of_marks_ends_its_word() -> None:
    """Marks beyond 30 are dropped, since putting them in order would take quadratic time; 30 are kept."""
    kept = "q" + "\u0301" * 30

    words = index_words(f"{kept}\u0301x {kept}x")

    assert words == [kept, "x", f"{kept}x"]


def test_postings_hold_each_word_once_on_the_line_of_its_frequency() -> None:
    """Line n names the words that occur n times; lines between may be empty."""
    words = ["red", "fox", "red", "a-b", "red"]

    text = postings(words)

    assert text.split("\n") == [" fox a\ue02db ", "  ", " red "]


def test_token_replaces_punctuation_only() -> None:
    """Letters and digits of every script stay; each punctuation character has its own stand-in."""
    assert token("naïve中9") == "naïve中9"
    assert token("a-b_c") == "a\ue02db\ue05fc"


def test_index_finds_whole_name_not_its_neighbour() -> None:
    """A name with punctuation is one token to FTS5, and not found by another name of the same parts."""
    rows = [index_words("cedar-582"), index_words("cedar_582 cedar.582"), index_words("Café STRASSE")]

    assert matching("cedar-582", rows) == [0]
    assert matching("cedar", rows) == [0, 1]
    assert matching("café", rows) == [2]


@given(st.lists(texts | knotty, min_size=1, max_size=4), st.data())
def test_index_finds_exactly_the_rows_that_hold_a_word(documents: list[str], data: st.DataObject) -> None:
    """FTS5 with its ascii tokenizer sees our words and nothing else."""
    rows = [index_words(document) for document in documents]
    words = sorted({word for row in rows for word in row}) or ["absent"]
    word = data.draw(st.sampled_from(words) | st.sampled_from(words).map(lambda word: word[:-1] or "x"))

    found = matching(word, rows)

    assert found == [place for place, row in enumerate(rows) if word in row]


@given(texts | knotty)
def test_words_are_short_folded_and_free_of_separators(text: str) -> None:
    """Whatever the text, a word is never empty, never too long, and holds no space or private-use sign."""
    words = index_words(text)

    assert all(1 <= len(word) <= MAX_WORD_CHARACTERS for word in words)
    assert not any(character.isspace() or category(character)[0] == "C" for word in words for character in word)


@given(texts | knotty)
def test_a_text_is_found_by_itself(text: str) -> None:
    """Every word of a query stands among the words of the same text."""
    assert set(query_words(text, None)) <= set(index_words(text))


@given(knotty)
def test_a_text_is_found_whatever_the_case(text: str) -> None:
    """Humps of camelCase add words and take none away."""
    assert set(query_words(text.lower(), None)) <= set(index_words(text))
    assert set(query_words(text.upper(), None)) <= set(index_words(text))


@given(texts | knotty)
def test_canonically_equal_texts_have_equal_words(text: str) -> None:
    """Composed or decomposed, a text is found by the same words."""
    assert index_words(normalize("NFC", text)) == index_words(normalize("NFD", text))


@given(texts | knotty, texts | knotty)
def test_lines_are_cut_independently(one: str, other: str) -> None:
    """The words of a text are the words of its lines: no alphabet changes how another is stemmed."""
    assert index_words(f"{one}\n{other}") == index_words(one) + index_words(other)
