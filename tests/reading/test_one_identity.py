"""A value is one value, whatever holds it, in whatever role; and what differs stays apart."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
import pyarrow as pa
import pytest

from evaluator import Log
from evaluator.errors import LogError
from evaluator.log.encoder import value_text
from evaluator.reading.labels import value_texts

SEVENS = [7, 8, 7, 8]
FORMS: dict[str, pa.Array] = {
    "text": pa.array(["7", "8", "7", "8"]),
    "int64": pa.array(SEVENS),
    "uint8": pa.array(SEVENS, pa.uint8()),
    "float64": pa.array([7.0, 8.0, 7.0, 8.0]),
    "float32": pa.array(SEVENS, pa.float32()),
    "decimal": pa.array([Decimal(x) for x in SEVENS], pa.decimal128(9, 2)),
    "text of floats": pa.array(["7.0", "8.0", "7.00", "8"]),
    "padded": pa.array([" 7", "8 ", "\t7\n", "\u00a08 "]),
    "large": pa.array(["7", "8", "7", "8"], pa.large_string()),
    "view": pa.array(["7", "8", "7", "8"], pa.string_view()),
    "dictionary of text": pa.array(["7 ", "8", "7 ", "8"]).dictionary_encode(),
    "dictionary of integers": pa.array(SEVENS).dictionary_encode(),
}
APART = ["08", "8", "1.10", "1.1", "1e5", "100000", "a", "A", "8.5", "8.50", "-8", "0x8", "8."]


def frame(**columns: Any) -> pa.Table:
    return pa.table({"t": [1, 2, 3, 4], "sold": pa.array([4, None, None, 9]), "ad": list("abab"), **columns})


def read(table: pa.Table, **keywords: Any) -> Log:
    keywords = {"time": "t", "action": "ad", "unit": "s", "conversion_time": "sold"} | keywords
    return Log.from_frames(table, **keywords)


def as_action(form: pa.Array, plain: pa.Array) -> list[Any]:
    return list(read(frame(ad=form)).labels)


def as_category(form: pa.Array, plain: pa.Array) -> list[Any]:
    log = read(frame(v=form), context={"v": "category"}, encoding="one-hot")
    assert log.meta.encoder is not None
    return [list(log.meta.encoder.columns[0].labels or ()), log.column("context").tolist()]


def as_hashed_category(form: pa.Array, plain: pa.Array) -> list[Any]:
    return read(frame(v=form), context={"v": "category"}).column("context").tolist()


def as_group(form: pa.Array, plain: pa.Array) -> list[Any]:
    return [str(x).removesuffix(".0") for x in read(frame(v=form), keep={"v": "v"}).displays["v"].to_pylist()]


def as_id(form: pa.Array, plain: pa.Array) -> list[Any]:
    displays = frame(id=form).slice(0, 2).drop_columns("sold")
    log = read(displays, conversions=pa.table({"id": plain.slice(0, 2), "sold": [5, 9]}), id="id")
    return log.conversions["display_id"].to_pylist()


def as_id_of_conversions(form: pa.Array, plain: pa.Array) -> list[Any]:
    return as_id(plain, form)


def as_eligible(form: pa.Array, plain: pa.Array) -> list[Any]:
    both = form.dictionary_decode() if isinstance(form, pa.DictionaryArray) else form
    pairs = pa.ListArray.from_arrays(pa.array([0, 2, 4]), both)
    log = read(frame(ad=plain, e=pa.concat_arrays([pairs, pairs])), eligible="e")
    return [list(log.labels), log.displays["eligible"].to_pylist()]


def as_candidate(form: pa.Array, plain: pa.Array) -> list[Any]:
    some = pa.table({"of": [1, 1, 2, 2], "one": form})
    displays = frame(ad=plain, id=[1, 2, 3, 4]).slice(0, 2)
    log = read(displays, candidates=some, candidate_display="of", candidate_action="one", id="id")
    return [list(log.labels), log.displays["eligible"].to_pylist()]


def as_flight(form: pa.Array, plain: pa.Array) -> list[Any]:
    calendar = pa.table({"one": form.slice(0, 2), "begin": [0, 0]})
    log = read(frame(ad=plain), calendar=calendar, calendar_action="one", calendar_from="begin")
    return [list(log.labels), log.displays["eligible"].to_pylist()]


def as_key(form: pa.Array, plain: pa.Array) -> list[Any]:
    both = pa.array([4, 4, 4, 4])
    log = read(frame(k=form, sold=both), key=["k"], deduplicate="last_click")
    return log.conversions["display_id"].to_pylist()


ROLES = [
    as_action, as_category, as_hashed_category, as_group, as_id, as_id_of_conversions, as_eligible, as_candidate,
    as_flight, as_key,
]  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_every_form_in_every_role_is_the_same_value(role: Any) -> None:
    plain = FORMS["text"]
    wanted = role(plain, plain)
    assert {name: role(form, plain) for name, form in FORMS.items()} == dict.fromkeys(FORMS, wanted)


@pytest.mark.parametrize("role", [as_action, as_category, as_id, as_id_of_conversions, as_eligible])
def test_uuids_are_one_whatever_the_case_of_their_letters(role: Any) -> None:
    of = [UUID(int=0xABCDEF << 100 | k) for k in (1, 2, 1, 2)]
    plain = pa.array([str(x) for x in of])
    wanted = role(plain, plain)
    for form in (pa.array([str(x).upper() for x in of]), pa.array([x.bytes for x in of], pa.uuid())):
        if role is not as_eligible or not isinstance(form, pa.ExtensionArray):
            assert role(form, plain) == wanted


def test_truth_values_are_one_label_whoever_wrote_them() -> None:
    found = [as_action(pa.array(x), x) for x in ([True, False] * 2, ["True", "False"] * 2, ["TRUE", "FALSE"] * 2)]
    assert found == [["false", "true"]] * 3


def test_what_differs_stays_apart() -> None:
    assert value_texts(pl.Series(APART)).to_list() == APART
    floats = pl.Series([0.1, 1e300, float("inf"), float("nan"), None, -0.0, 2.0**62])
    assert value_texts(floats).to_list() == ["0.1", "1e+300", "inf", None, None, "0", str(2**62)]


def test_moments_are_one_in_whatever_unit_they_are_kept() -> None:
    of = pl.Series([1_700_000_000_000_000, 1_700_000_000_250_000]).cast(pl.Datetime("us"))
    wanted = ["2023-11-14 22:13:20", "2023-11-14 22:13:20.25"]
    assert [value_texts(of.cast(pl.Datetime(unit))).to_list() for unit in ("ms", "us", "ns")] == [wanted] * 3


def test_one_text_and_a_column_of_texts_follow_one_rule() -> None:
    cells = [*APART, " a ", "7.0", "-0.0", "0.00", "-7.0", "08.0", "True", "FALSE", "tRUE", "\u00a0x", " ", "", "ü ",
             "ABCDEF00-0000-0000-0000-000000000001", "ABCDEF00-0000-0000-0000-00000000000G", "T", "F"]  # fmt: skip
    wanted = [value_text(cell) or None for cell in cells]
    assert value_texts(pl.Series(cells)).to_list() == wanted
    assert [value_texts(pl.Series([cell])).to_list()[0] for cell in cells] == wanted


def test_nothing_is_copied_of_a_column_that_is_as_it_should_be() -> None:
    column = pl.Series(["ad-10", "x", "New", "Two", "False-1", "-", None])
    assert value_texts(column) is column


def test_a_join_that_fails_shows_ids_of_both_tables() -> None:
    displays = frame(id=["shop-1", "shop-2", "shop-3", "shop-4"]).drop_columns("sold")
    with pytest.raises(LogError, match=r"conversions row 1: '1'.*ids of displays are 'shop-1', 'shop-2', 'shop-3'"):
        read(displays, conversions=pa.table({"id": ["1"], "sold": [5]}), id="id")
    some = pa.table({"of": ["1"], "one": ["a"]})
    with pytest.raises(LogError, match=r"displays row 1: 'shop-1'.*ids of candidates are '1'"):
        read(frame(id=displays["id"]), candidates=some, candidate_display="of", candidate_action="one", id="id")
