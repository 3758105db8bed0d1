"""Concepts: words that can stand for one another, so that a query finds what was said in other words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from ledgerstone.core import canonical
from ledgerstone.core.words import query_words
from ledgerstone.errors import UsageError

# In thousandths of what the query's own word weighs. A caller's synonyms are meant; a cluster only guesses.
OWN_WEIGHT: Final = 1000
SYNONYM_WEIGHT: Final = 700
CONCEPT_WEIGHT: Final = 400

MAX_RELATED: Final = 96
MAX_SYNONYM_ENTRIES: Final = 256
MAX_SYNONYM_WORDS: Final = 16
MAX_SYNONYM_BYTES: Final = 128

# One cluster a line. A word may stand in several. Chosen for what people and programmers say to each other; a word
# belongs here if a note that holds it could well be meant by a question that holds another of its line.
CLUSTERS: Final = """
    car automobile vehicle auto
    bicycle bike
    plane airplane aeroplane aircraft flight
    train railway rail
    truck lorry van
    tag plate registration licence license
    petrol gasoline gas fuel
    trip journey travel tour voyage
    holiday vacation leave getaway
    highway motorway freeway
    place location site spot venue
    house home residence dwelling
    flat apartment condo
    bathroom toilet restroom lavatory washroom
    lift elevator
    rubbish trash garbage waste
    rent lease tenancy
    landlord owner lessor
    tenant renter lessee
    move relocate
    country nation state
    foreign overseas abroad international
    immigrate emigrate migrate
    child kid son daughter
    baby infant newborn toddler
    parent mother father mom dad mum
    brother sister sibling
    wife husband spouse partner
    marry marriage wedding
    family relatives kin household
    friend buddy pal mate
    doctor physician
    dentist dental teeth tooth
    therapist counsellor counselor psychologist
    hospital clinic
    medicine medication drug pill
    ill sick disease ailment
    injury wound hurt pain ache
    surgery operation
    tired exhausted fatigue weary
    sleep nap rest
    exercise workout training gym
    food meal dish cuisine
    restaurant diner eatery cafe
    shop store market
    buy purchase order acquire
    price cost charge fee
    cheap inexpensive affordable
    expensive costly pricey
    pay payment
    bill invoice
    receipt voucher
    refund reimburse
    money cash funds
    salary wage pay income earnings
    tax levy duty
    budget spending expenses
    invest stock shares
    insurance coverage policy
    job work employment occupation
    boss manager supervisor
    employee worker staff
    colleague coworker teammate
    company firm business enterprise corporation
    customer client
    supplier vendor provider
    contract agreement deal
    hire recruit employ
    fire dismiss sack layoff
    quit resign leave
    retire pension
    promote raise
    office workplace
    meeting appointment call conference
    agenda schedule itinerary timetable
    deadline due
    task todo chore assignment
    goal aim objective target
    plan strategy roadmap
    project initiative undertaking
    idea concept thought notion
    decide decision choose choice
    choose select pick prefer
    hobby pastime interest
    game match play
    movie film cinema
    song music tune track
    picture photo photograph image snapshot
    book novel title
    author writer novelist
    news report headline
    school college university
    teacher instructor tutor professor
    student pupil learner
    class lesson course lecture
    exam test quiz
    learn study
    teach instruct train
    translate interpret
    pet animal
    weather climate forecast
    clothes outfit apparel
    gift present
    party celebration
    afraid scared fear frightened
    anxious worried nervous stress
    big large huge great
    small little tiny
    fast quick rapid speed
    slow sluggish
    easy simple straightforward
    difficult hard tough challenging
    important crucial essential vital
    new recent latest fresh
    begin start commence launch
    end finish complete conclude
    stop halt cease
    continue proceed resume
    help assist aid support
    assistant helper aide
    speak talk tell mention
    discuss debate argue
    ask question query enquire inquire
    answer reply respond response
    suggest recommend propose advise
    permit allow let
    permission consent approval
    forbid ban prohibit disallow
    agree accept approve
    refuse reject decline deny
    phone telephone mobile cell cellphone
    call ring dial
    parcel package shipment delivery
    send deliver ship dispatch
    find locate discover
    search seek lookup
    lock secure
    repair fix mend
    broken damaged faulty
    create make produce generate
    change modify alter edit
    increase grow rise raise
    decrease reduce lower shrink
    join combine merge unite
    accident crash collision
    police officer cop
    lawyer attorney solicitor
    danger hazard risk
    safe secure
    today currently nowadays
    nickname alias handle
    address residence
    size dimension
    kind type sort category
    list catalogue catalog inventory
    error failure bug crash fault defect
    exception traceback
    issue problem trouble
    incident outage downtime
    crash panic abort
    hang freeze stuck deadlock
    fix patch hotfix
    workaround mitigation
    delete remove erase drop purge
    update upgrade
    undo revert
    install setup
    configuration config settings preferences
    parameter argument
    variable constant
    function method procedure routine
    interface protocol
    module library package
    version release
    release deploy rollout ship
    production prod live
    staging preprod
    development dev
    developer programmer engineer coder
    code source program
    script program
    software application app program
    tool utility
    command cli shell terminal console
    repository repo
    branch fork
    commit changeset
    diff delta
    ticket issue
    test spec check
    mock stub fake
    pipeline ci
    build compile
    format formatter
    refactor rewrite restructure
    deprecated obsolete legacy
    documentation docs manual
    guide tutorial howto
    comment annotation remark
    file document
    disk drive storage
    backup snapshot copy
    restore recover recovery
    copy duplicate clone
    archive compress zip
    upload import
    download export fetch
    database db
    column field attribute
    row record
    cache memoize
    buffer queue
    memory ram
    processor cpu core
    thread concurrency parallel
    async asynchronous
    lock mutex semaphore
    server host machine
    container docker
    cloud aws azure gcp
    network internet
    connection link
    endpoint route
    api interface
    proxy gateway
    latency delay lag
    timeout expire
    performance speed throughput
    benchmark measurement
    monitor observe watch
    alert alarm notification
    login signin authenticate
    logout signout
    password passphrase credential
    secret token credential
    user account
    role permission privilege
    encrypt cipher
    certificate tls ssl
    vulnerability exploit cve
    attack breach intrusion
    firewall security
    privacy confidential
    website site
    browser chrome firefox
    frontend ui
    backend server
    layout design
    laptop computer notebook pc
    agent bot assistant
    data information
    convert transform
    validate verify check
    convention style guideline
    rule policy
    cause reason
    benefit advantage
    drawback disadvantage downside
    similar alike
    expire expiry
    remind notify
    mandatory required compulsory
"""


def related(words: Iterable[str], synonyms: Mapping[str, Sequence[str]] | None = None) -> dict[str, int]:
    """The words to look for beside a query's own, each with its weight in thousandths of an own word's.

    ``words`` are a query's stems, as ``query_words`` makes them. ``synonyms`` are the caller's: where all words of
    an entry's name occur in the query, the words of its texts are looked for too. The query's own words are never
    among the answer; at most ``MAX_RELATED``, a caller's synonyms first, then in the order of the query.
    An error for synonyms outside their limits as ``checked`` says, whether the query names them or not.
    """
    own = list(dict.fromkeys(words))
    asked = frozenset(own)
    found: dict[str, int] = {}
    for name, others in checked(synonyms or {}):
        if asked.issuperset(name):
            found.update(dict.fromkeys(others, SYNONYM_WEIGHT))
    for word in own:
        for other in _clusters().get(word, ()):
            found.setdefault(other, CONCEPT_WEIGHT)
    kept = [(word, weight) for word, weight in found.items() if word not in asked]
    return dict(kept[:MAX_RELATED])


def checked(synonyms: Mapping[str, Sequence[str]]) -> list[tuple[list[str], list[str]]]:
    """A caller's synonyms as stems; UsageError says limit and offence, RuleError those of a text."""
    if len(synonyms) > MAX_SYNONYM_ENTRIES:
        raise UsageError(f"synonyms: at most {MAX_SYNONYM_ENTRIES} entries, not {len(synonyms)}")
    stemmed = []
    for name, others in synonyms.items():
        if isinstance(others, str) or len(others) > MAX_SYNONYM_WORDS:
            offence = "a single text" if isinstance(others, str) else len(others)
            raise UsageError(f"synonyms of {name!r}: a list of at most {MAX_SYNONYM_WORDS} texts, not {offence}")
        for text in (name, *others):
            canonical.text(text, name="synonyms", least=1, most=MAX_SYNONYM_BYTES)
        stems = query_words(name, None)
        if not stems:
            raise UsageError(f"synonyms: {name!r} holds no word to look for")
        stemmed.append((stems, [stem for text in others for stem in query_words(text, None)]))
    return stemmed


@cache
def _clusters() -> Mapping[str, tuple[str, ...]]:
    """Each stem of ``CLUSTERS`` with the others of its lines; made when a query first needs it."""
    found: dict[str, dict[str, None]] = {}
    for line in CLUSTERS.strip().splitlines():
        stems = [query_words(word)[0] for word in line.split()]
        for stem in stems:
            found.setdefault(stem, {}).update(dict.fromkeys(other for other in stems if other != stem))
    return {stem: tuple(others) for stem, others in found.items()}
