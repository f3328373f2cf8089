"""What a column looks like, by its name and its first cells, and the lines of a drafted ``spec.toml``, with reasons."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from evaluator.errors import UsageError
from evaluator.input_files import Value, toml_comment, toml_key, toml_value
from evaluator.reading.cells import TRUTHS
from evaluator.reading.roles import DISPLAY, EVENT, Role
from evaluator.reading.row_rules import Guess, guesses_of

# Words that name a role, the likeliest first where their order matters.
_ACTIONS, _VALUES = DISPLAY["action"].words, EVENT["value"].words
_PROPENSITIES, _USERS = {*DISPLAY["propensity"].words}, {*DISPLAY["user"].words}
_WORDS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|\d+")
CONVERSIONS = (
    "conversion", "converted", "conv", "convert", "sale", "sales", "sold", "purchase", "purchased", "bought", "order",
    "ordered", "booking", "booked", "install", "installed", "signup", "subscribed", "paid", "payment", "transaction",
    "reward", "rewards", "label", "outcome", "response", "y", "click", "clicked", "clicks",
)  # fmt: skip
# Words beside which "total" is money.
_OF_MONEY = {"order", "grand", "net", "gross", "paid", "cart", "checkout", "price", "amount", "sales", "sum"}
# What a price or amount that has one of these words beside it is of: a part of what was paid, or nothing paid.
PARTS = {
    "discount", "discounts", "tax", "taxes", "vat", "shipping", "refund", "refunded", "fee", "fees", "tip", "duties",
    "unit", "item", "lineitem", "line", "compare", "cost", "subtotal", "outstanding", "coupon", "quantity", "qty",
}  # fmt: skip
CURRENCIES = {
    "usd", "eur", "gbp", "jpy", "cny", "inr", "aud", "cad", "chf", "sek", "nok", "dkk", "pln", "czk", "huf", "brl",
    "mxn", "krw", "try", "rub", "zar", "sgd", "hkd", "nzd", "ils", "thb", "idr", "twd", "aed", "sar",
}  # fmt: skip
_OUTCOMES = {
    *CONVERSIONS, *(word for word in _VALUES if word not in ("total", "subtotal")), "open", "opened", "opens",
    "unsubscribed", "bounced", "complained", "orders", "conversions", "purchases", "attribution", "attributed",
    "refund", "returned", "cpo", "cost", "delay", "lag", "dwell", "bounce", "churn", "churned", "target", "result",
    "success", "won",
}  # fmt: skip
_TIMES = {"time", "timestamp", "ts", "date", "datetime", "at", "when", "t", "moment"}
_IDS = {"id", "ids", "uid", "uuid", "guid", "cookie", "key", "index", "idx", "ip", "email", "hash"}
# Beside a propensity's word: whose, or of what. What else stands there may make it the chance of anything.
_OF_PROPENSITY = {
    "score", "logged", "logging", "logger", "action", "arm", "display", "column", "assignment", "assigned", "shown",
    "treatment", "variant", "variation", "behavior", "behaviour", "policy",
}  # fmt: skip
_MAYBE = {*DISPLAY["weight"].words} | {
    "p", "prob", "probs", "probability", "probabilities", "propensity", "propensities", "pscore", "split", "splits",
    "allocation",
}  # fmt: skip
# Those that name users only beside a word of ids.
_WITH_ID = {"device", "anonymous", "amplitude", "distinct", "braze"}
# What a name of users, or of orders, may say beside it.
_OF_IDS = _IDS | {"no", "number", "pseudo", "anonymous", "external", "hashed", "encoded", "full", "ga"}
_ORDERS = {
    "order", "transaction", "invoice", "receipt", "checkout", "booking", "purchase", "conversion", "sale", "cart",
    "basket", "payment",
}  # fmt: skip
# Events that show something, the likeliest first; a page that is seen shows no choice.
_SHOWS = (
    "impression",
    "impressions",
    "exposure",
    "exposed",
    "shown",
    "displayed",
    "assigned",
    "delivered",
    "sent",
    "send",
    "viewed",
    "view",
)
_PAGES = {"page", "screen", "session"}
_MANY_USERS, _MANY_KINDS = 20, 100
_NONE_WORDS = ("\\N", "NA", "N/A", "n/a", "null", "NULL", "None", "none", "nan", "NaN", "-", "?", "0000-00-00 00:00:00")
NO_ANSWER = "none"
# What the comment of a line begins with: what the sample shows, or what it cannot show.
GUESSED, CHECK = "guessed: ", "please check: "


def words_of(name: str) -> list[str]:
    """Return the words of a column's name.

    >>> words_of("soldAt"), words_of("conversion_timestamp"), words_of("displayID2")
    (['sold', 'at'], ['conversion', 'timestamp'], ['display', 'id', '2'])
    """
    return [word.lower() for word in _WORDS.findall(name)]


@dataclass(frozen=True)
class Look:
    """A column as its first cells look.

    Missing `cells` are null; the others are text, or of the file's own type.
    """

    name: str
    cells: pl.Series

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of its name."""
        return frozenset(words_of(self.name))

    @cached_property
    def text(self) -> pl.Series:
        """Its cells as text; what only says that a number or time is missing is null."""
        cells = self.cells.cast(pl.Int8) if self.cells.dtype == pl.Boolean else self.cells
        text = cells.cast(pl.String)
        words = text.str.strip_chars().str.to_lowercase() if self.cells.dtype == pl.String else None
        if words is not None and words.drop_nulls().is_in(list(TRUTHS)).all():
            text = words.replace(TRUTHS)
        return text.set(text.is_in(self.none_words), None) if self.none_words else text

    @cached_property
    def none_words(self) -> list[str]:
        """Words among numbers or times that mean none."""
        if self.cells.dtype != pl.String:
            return []
        found = [word for word in _NONE_WORDS if (self.cells == word).any()]
        rest = self.cells.filter(~self.cells.is_in(found)).drop_nulls() if found else None
        return found if rest is not None and len(rest) and (_numbers(rest) is not None or guesses_of(rest)) else []

    @cached_property
    def numbers(self) -> pl.Series | None:
        """Its cells as numbers; None where some are none, or there are no cells."""
        return None if self.cells.dtype.is_temporal() else _numbers(self.text)

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest of its numbers, NaN where it holds none."""
        if self.numbers is None:
            return math.nan, math.nan
        return float(self.numbers.min()), float(self.numbers.max())  # type: ignore[arg-type]

    @property
    def filled(self) -> pl.Series:
        """Which cells are there."""
        return self.text.is_not_null()

    @cached_property
    def distinct(self) -> int:
        """Number of different cells, missing ones apart."""
        return self.text.drop_nulls().n_unique()

    @cached_property
    def none_number(self) -> int | None:
        """Number that means none in a column of times, delays or values: -1, or 0 among seconds since 1970."""
        numbers = None if self.numbers is None else self.numbers.drop_nulls()
        if numbers is None or not len(numbers):
            return None
        least = numbers.min()
        rest = numbers.filter(numbers != least)
        if not len(rest):
            return None
        if least == -1 and float(rest.min()) >= 0:  # type: ignore[arg-type]
            return -1
        return 0 if least == 0 and float(rest.min()) > 631_152_000 else None  # type: ignore[arg-type]

    @property
    def none(self) -> list[str | int]:
        """All that means none."""
        return [*self.none_words, *([] if self.none_number is None else [self.none_number])]

    @cached_property
    def present(self) -> pl.Series:
        """Text of the cells but for what means none."""
        if self.none_number is None or self.numbers is None:
            return self.text
        return self.text.set(self.numbers == self.none_number, None)

    @cached_property
    def moments(self) -> list[Guess]:
        """How its cells could be written as times; empty where they are none, or have no unit that could be told."""
        if self.cells.dtype in (pl.Datetime, pl.Date):
            return [Guess("datetime")]
        return [] if self.cells.dtype.is_temporal() else guesses_of(self.present)

    @property
    def is_whole(self) -> bool:
        """Whether all its cells are whole numbers."""
        return self.numbers is not None and bool((self.numbers.drop_nulls() % 1 == 0).all())

    @property
    def is_flag(self) -> bool:
        """Whether its cells are 0 and 1."""
        return self.numbers is not None and set(self.numbers.drop_nulls().unique()) <= {0.0, 1.0}

    @property
    def is_time(self) -> bool:
        """Whether its cells may be times: dates, seconds since 1970, or whole numbers of that name."""
        named = bool(self.words & _TIMES)
        if self.cells.dtype in (pl.Datetime, pl.Date):
            return True
        if self.moments:
            return named or (self.moments[0].unit == "datetime" and self.numbers is None) or not self._is_id_named
        return named and (self.is_whole or not self.filled.any())

    @property
    def says_time(self) -> bool:
        """Whether its name says that it holds times."""
        return bool(self.words & _TIMES)

    @property
    def says_outcome(self) -> bool:
        """Whether its name says that it is known only after the display."""
        joined = self.name.lower().replace("_", "")
        if self.says_total:
            return True
        stems = ("convers", "convert", "click", "purchas", "revenue", "reward", "outcome", "attribut", "refund")
        return bool(self.words & _OUTCOMES) or any(stem in joined for stem in stems)

    @property
    def says_delay(self) -> bool:
        """Whether its name says that it is a duration until a conversion."""
        return bool(self.words & {"delay", "lag", "latency"}) or {"time", "to"} <= self.words

    @property
    def says_propensity(self) -> bool:
        """Whether its name says that it is a probability of the action shown."""
        words = self.words - _OF_PROPENSITY
        return (bool(words) and words <= _PROPENSITIES) or bool(words & {"propensity", "pscore"})

    @property
    def may_say_propensity(self) -> bool:
        """Whether its name may say so: a probability, split or weight, of whatever. It is no feature without a word."""
        return self.says_propensity or bool(self.words & _MAYBE)

    @property
    def says_total(self) -> bool:
        """Whether its name says that it is the total of what was paid, and not one of visits."""
        return bool(self.words & {"total", "subtotal"}) and self.words <= {"total", "subtotal"} | _OF_MONEY | CURRENCIES

    @property
    def value_rank(self) -> int:
        """How much its name says that it holds what conversions are worth, least first."""
        return rank_of(sorted(self.words), _VALUES) or 0

    @property
    def says_value(self) -> bool:
        """Whether its name says that it holds what conversions are worth."""
        return bool(self.words & (set(_VALUES) - {"total", "subtotal"})) or self.says_total

    @property
    def currency(self) -> str | None:
        """Currency in its name."""
        return next(iter(sorted(self.words & CURRENCIES)), None)

    @property
    def says_user(self) -> bool:
        """Whether its name says that it names users."""
        with_id = bool(self.words & _IDS)
        named = self.words & _USERS if with_id else (self.words & _USERS) - _WITH_ID
        return bool(named) and self.words <= _USERS | _OF_IDS and not self.is_time

    @property
    def is_user(self) -> bool:
        """Whether it names users: many, by its name and cells."""
        return self.says_user and self.distinct >= _MANY_USERS

    @property
    def numbers_are_ids(self) -> bool:
        """Whether its cells can identify something: text, or whole numbers."""
        return self.numbers is None or self.is_whole

    @property
    def is_order(self) -> bool:
        """Whether it identifies orders, by its name, or as Shopify writes them: #1001."""
        if self.words == {"name"}:
            return bool(self.text.drop_nulls().str.contains(r"^#\d+$").all()) and bool(self.filled.any())
        rest = self.words - _ORDERS
        return bool(self.words & _ORDERS) and rest <= _OF_IDS and (bool(rest) or self.is_id)

    @property
    def event_kinds(self) -> tuple[list[str], list[str]] | None:
        """Its values that name displays, and those that name outcomes, the likeliest first; None without kinds."""
        if self.numbers is not None or not 2 <= self.distinct <= min(_MANY_KINDS, len(self.text) // 2):
            return None
        words = {value: set(words_of(value)) for value in sorted(self.text.drop_nulls().unique().to_list())}
        shows = [value for value, of in words.items() if of & {*_SHOWS}]
        shows.sort(key=lambda value: (bool(words[value] & _PAGES), rank_of(words[value], _SHOWS) or 0))
        outcomes = [value for value, of in words.items() if value not in shows and of & _OUTCOMES]
        last = len(CONVERSIONS)
        outcomes.sort(key=lambda value: last if (rank := rank_of(words[value], CONVERSIONS)) is None else rank)
        plain = bool(self.words & {"event", "events"}) and self.words <= {"event", "events", "name", "type", "kind"}
        typed = bool(self.words & {"event", "type", "action", "activity", "interaction", "kind"})
        return (shows, outcomes) if plain or (typed and shows and outcomes) else None

    @property
    def is_probability(self) -> bool:
        """Whether its cells are numbers in (0, 1], none missing."""
        if self.numbers is None or self.numbers.null_count():
            return False
        return bool(((self.numbers > 0) & (self.numbers <= 1)).all())

    @property
    def mean_inverse(self) -> float:
        """Mean of one over its numbers, which of propensities is the number of actions."""
        return math.nan if self.numbers is None else float(self.numbers.pow(-1).mean())  # type: ignore[arg-type]

    @property
    def _is_id_named(self) -> bool:
        return bool(self.words & _IDS)

    @property
    def is_id(self) -> bool:
        """Whether its cells, or its name, identify something."""
        filled = int(self.filled.sum())
        unique = filled >= 20 and self.distinct > 0.5 * filled and (self.numbers is None or self.is_whole)
        return self._is_id_named or unique

    def fits(self, role: Role) -> bool:
        """Whether it may have a role of numbers, by its name, and no cell breaks a rule of it."""
        numbers = self.numbers if self.words.intersection(role.words) else None
        return numbers is not None and not any(rule.breaks(numbers).any() for rule in role.rules)

    @property
    def may_be_id(self) -> bool:
        """Whether it identifies rows: another id on every one."""
        named = bool(self.words & {"id", "uuid", "guid", "key"})
        return named and self.is_id and self.distinct == len(self.text)

    @property
    def action_rank(self) -> int | None:
        """How much its name says that it is the action, least first; None if it does not, or its cells cannot be."""
        rank = rank_of(self.words, _ACTIONS)
        return None if rank is None or not self.may_be_action else rank

    @property
    def may_be_action(self) -> bool:
        """Whether its cells are a few labels, none missing."""
        return not self.text.null_count() and 2 <= self.distinct <= max(2, min(1_000, len(self.text) // 2))


def rank_of(words: Iterable[str], known: tuple[str, ...]) -> int | None:
    """Return the place of the first known word, or None if no word is known."""
    places = [known.index(word) for word in words if word in known]
    return min(places) if places else None


def _numbers(text: pl.Series) -> pl.Series | None:
    numbers = text.str.strip_chars().cast(pl.Float64, strict=False)
    lost = numbers.null_count() > text.null_count() or numbers.null_count() == len(text)
    return None if lost or bool(numbers.is_nan().any()) else numbers


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a file cannot tell for certain.

    Parameters
    ----------
    key
        Key of the spec that the answer decides, such as ``display.time``.
    words
        Sentence that asks it.
    guess
        Answer that the file suggests, ``"none"`` where it suggests none.
    choices
        Answers that are possible, None where any is.
    why
        What speaks for the guess.
    """

    key: str
    words: str
    guess: str
    choices: tuple[str, ...] | None
    why: str


Ask = Callable[[Question], str]


@dataclass(frozen=True)
class Line:
    """A key of the spec.

    Without a key, the comment, which is the reason for the value, stands alone. A line that is not `live` is written as
    a comment, to be completed or dropped.
    """

    key: str
    value: Value = ""
    comment: str = ""
    live: bool = True

    def __str__(self) -> str:
        if not self.key:
            return toml_comment(self.comment)
        said = f"{toml_key(self.key)} = {toml_value(self.value)}"
        said = said if self.live else f"# {said}"
        return f"{said}  {toml_comment(self.comment)}" if self.comment else said


@dataclass(frozen=True)
class Draft:
    """A spec drafted from files.

    `conversions` are the files of events, which may be those of the displays; `sections` has the lines, without the
    files; `rows` the numbers of rows looked at, of the displays and of the second table, and whether these are all;
    `missing` the keys without which it is no spec, and which could not be guessed.
    """

    files: Path
    conversions: Path | None
    sections: dict[str, tuple[Line, ...]]
    rows: tuple[tuple[int, bool], ...]
    missing: tuple[str, ...]

    @property
    def open(self) -> list[str]:
        """What to check before a number is believed: a sentence for each key that no one decided for certain."""
        return [
            f"{section}{'.' if line.key else ''}{line.key}: {line.comment.removeprefix(CHECK)}"
            for section, lines in self.sections.items()
            for line in lines
            if line.comment.startswith(CHECK)
        ]

    @property
    def commented(self) -> list[str]:
        """Keys that stand in comments, without effect."""
        return [f"{name}.{line.key}" for name, lines in self.sections.items() for line in lines if not line.live]

    def toml(self, folder: str | Path | None = None) -> str:
        """Return the text of the spec.

        Files are named relative to `folder`, which the spec is for, or by their whole paths.
        """
        looked = " and ".join(f"{'all' if whole else 'the first'} {rows:,} rows" for rows, whole in self.rows)
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", re.sub(r"\.[A-Za-z0-9.]+$|[*?]+.*", "", self.files.name)).strip("-.")
        head = [
            toml_comment(f"Drafted from {looked}. Read every line: what is guessed, and what to check, says so."),
            f"name = {toml_value(stem or 'log')}",
            f"title = {toml_value(self.files.name)}",
            f'licence = "unknown"  {toml_comment("please check: who may use this log")}',
        ]
        for section, lines in self.sections.items():
            found = self.files if section == "source" else self.conversions if section.endswith(".source") else None
            files = [] if found is None else [str(Line("files", _named(found, folder)))]
            head += ["", f"[{section}]", *files, *map(str, lines)]
        return "\n".join(head) + "\n"


def _named(path: Path, folder: str | Path | None) -> str:
    whole = Path(os.path.abspath(path))
    if folder is None:
        return whole.as_posix()
    try:
        return Path(os.path.relpath(whole, os.path.realpath(folder))).as_posix()
    except ValueError:  # another drive
        return whole.as_posix()


def most_of(text: str | None) -> float:
    """Return the number in an answer to what a display can earn at most; 1 without one."""
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        raise UsageError(f"log.reward_max: {text!r} is no number.", remedy="write 20, or none.") from None
