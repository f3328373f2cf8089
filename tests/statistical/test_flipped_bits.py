"""Every byte of a converted log, damaged: refused, or without effect on any value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluator.errors import SourceError
from evaluator.log import Selection, StoredLog
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.reading.log_folders import DISPLAYS, META, TABLES
from tests.reading.test_integrity import N, contents, made_log

SEED = 1


def damages(whole: bytes, rng: np.random.Generator) -> list[tuple[str, bytes]]:
    """The file with a bit flipped in each of its bytes, cut after some of them, or with a run of them overwritten."""
    found = []
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        found.append((f"byte {place} is {changed[place]}", bytes(changed)))
    for place in rng.integers(0, len(whole), 100).tolist():
        found.append((f"cut at {place}", whole[:place]))
        noise = rng.integers(0, 256, 16, dtype=np.uint8).tobytes()
        found.append((f"noise at {place}", whole[:place] + noise + whole[place + 16 :]))
        found.append((f"zeros at {place}", whole[:place] + bytes(64) + whole[place + 64 :]))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_canonical(made_log(), tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [*TABLES[1:], META])
def test_files_read_whole(folder: Path, name: str) -> None:
    path, sound = folder / name, contents(folder)
    for what, content in damages(path.read_bytes(), np.random.default_rng(SEED)):
        path.write_bytes(content)
        found = contents(folder)
        if isinstance(found, SourceError):
            assert str(path) in str(found), what
        else:
            assert found == sound, what


def test_displays(folder: Path) -> None:
    """Their footer is verified when the log is opened, their pages as they are read: here each by itself."""
    sound, path = open_canonical(folder), folder / DISPLAYS
    expected, refused = sound.displays, 0
    written = path.read_bytes()
    footer = len(written) - 8 - int.from_bytes(written[-8:-4], "little")
    for what, content in damages(written, np.random.default_rng(SEED)):
        path.write_bytes(content)
        try:
            if len(content) == len(written) and content[footer:] == written[footer:]:
                assert opened(sound).displays.equals(expected), what
            else:
                open_canonical(folder)
                pytest.fail(f"{what}: the footer is another")
        except SourceError:
            refused += 1
    assert refused > 0.8 * len(written)


def test_a_column_read_alone(folder: Path) -> None:
    """No other column says then how many rows there should be."""
    sound, path = open_canonical(folder), folder / DISPLAYS
    written, expected, refused = path.read_bytes(), sound.column("time"), 0
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(pq.read_schema(path).get_field_index("time"))
    assert chunk.path_in_schema == "time"
    begins = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
    ends = begins + chunk.total_compressed_size
    for what, content in damages(written[begins:ends], np.random.default_rng(SEED)):
        path.write_bytes((written[:begins] + content + written[begins + len(content) :])[: len(written)])
        try:
            np.testing.assert_array_equal(opened(sound).column("time"), expected, what)
        except SourceError as error:
            refused += "since the log was opened" not in str(error)
    assert refused > 0.8 * (ends - begins)


def opened(sound: StoredLog) -> StoredLog:
    """The log as it is opened, but for what is verified before its pages are read."""
    return StoredLog(sound.paths, Selection(N, N), events=sound.conversions, actions=sound.actions, meta=sound.meta)
