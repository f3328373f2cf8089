import zlib

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evaluator.reading.contexts import token_slots


@given(st.text(max_size=3), st.lists(st.text()), st.integers(1, 2**20), st.integers(0, 3))
def test_slots_are_those_of_the_library(column: str, labels: list[str], dimensions: int, skipped: int) -> None:
    array = pa.array(labels, pa.large_string()).slice(min(skipped, len(labels)))
    codes = [zlib.crc32(f"{column}={label}".encode()) for label in labels[skipped:]]
    expected = [2 * (code % 2**31 % dimensions) + (code >= 2**31) for code in codes]
    assert token_slots(column, array, dimensions).tolist() == expected
