"""A log in several files is the log in one: its batches, its hash, its results; and it verifies itself as that does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator import replay
from evaluator.datasets import convert, load, show, validate
from evaluator.errors import OutputExistsError, SourceError
from evaluator.log import Log, StoredLog
from evaluator.log.fingerprint import content_hash
from evaluator.log.schema import to_numpy
from evaluator.outputs.atomic import refuse_inside_log
from evaluator.reading.canonical import ROWS_PER_GROUP, open_canonical, refuse_other, write_canonical
from evaluator.reading.log_folders import SCHEMA_VERSION, read_meta
from tests.logs import build_log
from tests.reading.parted import write_parts

N = 2 * ROWS_PER_GROUP + 5_000
CUTS = [ROWS_PER_GROUP, 2 * ROWS_PER_GROUP]


def made(n: int) -> Log:
    rng = np.random.default_rng(0)
    shown = np.sort(rng.choice(n, n // 50, replace=False))
    time = np.sort(rng.integers(0, 3 * n, n))
    return build_log(
        time=time,
        action=rng.choice(4, n),
        conversion_display=shown,
        conversion_time=time[shown] + 40,
        n_actions=4,
        context=rng.random((n, 2)).astype(np.float32),
    )


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> StoredLog:
    """The log in one file, as it always was."""
    folder = tmp_path_factory.mktemp("one")
    write_canonical(made(N), folder)
    return open_canonical(folder)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> StoredLog:
    return open_canonical(write_parts(made(N), tmp_path_factory.mktemp("many") / "log", CUTS))


def test_the_files_of_displays(one: StoredLog, parts: StoredLog) -> None:
    assert [path.name for path in one.paths] == ["displays.parquet"]
    assert [path.name for path in parts.paths] == [f"displays-0000{i}.parquet" for i in (1, 2, 3)]
    assert [read_meta(log.paths[0].parent).version for log in (one, parts)] == [SCHEMA_VERSION] * 2


def test_its_hash_is_that_of_one_file(one: StoredLog, parts: StoredLog) -> None:
    assert content_hash(parts) == content_hash(one)


@pytest.mark.parametrize("options", [{}, {"actions": "top:2"}, {"limit": ROWS_PER_GROUP + 3}], ids=str)
@pytest.mark.parametrize("first", [0, 60_001])
def test_rows_are_taken_from_the_row_groups_that_have_them(
    one: StoredLog, parts: StoredLog, options: dict[str, object], first: int
) -> None:
    names = ["display_id", "time", "action", "context", *["position"] * ("actions" in options)]
    for log in (one, parts):
        part = load(log.paths[0].parent, **options).after(first if "limit" not in options else first // 7)
        n, whole = len(part), {name: part.column(name) for name in names}
        for asked in ([0], [n - 1], [0, n - 1], [n - 1, n // 2, 0, 0], range(0, n, 100), range(n // 2, n)):
            wanted = np.array(asked)
            found = part.take(wanted, names)
            for name in names:
                np.testing.assert_array_equal(to_numpy(found[name]), whole[name][wanted])


def test_rows_are_taken_without_those_of_other_row_groups(tmp_path: Path) -> None:
    file = write_parts(made(N), tmp_path / "log", CUTS) / "displays-00002.parquet"
    about = pq.read_metadata(file).row_group(0)
    chunks = (about.column(i) for i in range(about.num_columns))
    place = next(chunk.data_page_offset for chunk in chunks if chunk.path_in_schema.startswith("context"))
    inside = bytearray(file.read_bytes())
    inside[place + 100] ^= 8
    file.write_bytes(inside)
    log = load(tmp_path / "log")
    ends = np.array([0, N - 1])
    assert to_numpy(log.take(ends, ["context"])["context"]).tolist() == made(N).column("context")[ends].tolist()
    with pytest.raises(SourceError, match=r"00002\.parquet: missing or damaged"):
        log.take(np.array([0, ROWS_PER_GROUP, N - 1]), ["context"])


def test_converted_again_it_is_one_file(tmp_path: Path, one: StoredLog, parts: StoredLog) -> None:
    again = [convert(log.paths[0].parent, tmp_path / str(len(log.paths))).log for log in (one, parts)]
    files = [(tmp_path / f"{n}" / "displays.parquet").read_bytes() for n in (1, 3)]
    assert files[0] == files[1]
    assert content_hash(again[0]) == content_hash(again[1])


def test_another_cell_is_another_log(tmp_path: Path, parts: StoredLog) -> None:
    log = made(N)
    action = log.column("action").copy()
    action[-1] = 3 - action[-1]
    other = Log(log.displays.set_column(2, "action", pa.array(action)), log.conversions, log.actions, log.meta)
    assert content_hash(load(write_parts(other, tmp_path / "log", CUTS))) != content_hash(parts)


@pytest.mark.parametrize("size", [ROWS_PER_GROUP, 50_000, N - 1])
@pytest.mark.parametrize("options", [{}, {"actions": "top:2"}, {"limit": ROWS_PER_GROUP + 3}], ids=str)
def test_batches_are_those_of_one_file(one: StoredLog, parts: StoredLog, size: int, options: dict[str, object]) -> None:
    names = ["time", "action", "context", "position"] if options == {"actions": "top:2"} else ["time", "context"]
    logs = [load(log.paths[0].parent, **options) for log in (one, parts)]
    expected, found = (list(log.batches(names, size)) for log in logs)
    assert [first for first, _ in found] == [first for first, _ in expected]
    for (_, mine), (_, theirs) in zip(found, expected, strict=True):
        for name in names:
            np.testing.assert_array_equal(mine[name], theirs[name])
    assert logs[0].conversions.equals(logs[1].conversions)


def test_sets_of_actions_in_parts(tmp_path: Path) -> None:
    log = convert("promotions", tmp_path / "one", limit=N).log
    parts = load(write_parts(log, tmp_path / "parts", CUTS))
    for size in (50_000, ROWS_PER_GROUP):
        np.testing.assert_array_equal(
            *(np.concatenate([b["eligible"] for _, b in each.batches(["eligible"], size)]) for each in (log, parts))
        )
    results = [replay(each, "ucb1", window=500).to_dict() for each in (log, parts)]
    assert results[0]["value"] == results[1]["value"]


def test_a_cut_anywhere_gives_the_same_displays(tmp_path: Path) -> None:
    log = made(900)
    parts = load(write_parts(log, tmp_path / "log", [1, 400, 401]))
    assert parts.displays.combine_chunks().equals(log.displays.combine_chunks())
    numbers = np.array([899, 0, 400, 401, 400])
    assert parts.take(numbers, ["time", "context"]).equals(log.take(numbers, ["time", "context"]))
    assert len(parts.after(450)) == 450


def test_replays_give_the_same_bits(one: StoredLog, parts: StoredLog) -> None:
    results = [replay(log, "ucb1", window=500, seed=3).to_dict() for log in (one, parts)]
    assert results[0] == results[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_parts(made(900), tmp_path / "log", [300, 600])


def cut_short(folder: Path) -> None:
    part = folder / "displays-00002.parquet"
    part.write_bytes(part.read_bytes()[:-1])


def exchanged(folder: Path) -> None:
    first, second = (folder / f"displays-0000{i}.parquet" for i in (1, 2))
    shutil.copy(second, first)


def added(folder: Path) -> None:
    shutil.copy(folder / "displays-00003.parquet", folder / "displays-00004.parquet")


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "displays-00002.parquet").unlink(), r"displays-00002\.parquet: missing or damaged"),
    (cut_short, r"displays-00002\.parquet: missing or damaged"),
    (exchanged, r"displays-00001\.parquet: missing or damaged"),
    (added, r"displays-00004\.parquet is no file of a converted log\."),
    (lambda folder: (folder / "displays.parquet").write_bytes(b""), r"displays\.parquet is no file"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE, ids=["missing", "short", "exchanged", "added", "whole too"])
@pytest.mark.parametrize("use", [load, validate])
def test_what_is_not_as_it_was_written_is_one_line(
    folder: Path, use: Callable[[Path], object], damage: Callable[[Path], object], said: str
) -> None:
    damage(folder)
    with pytest.raises(SourceError, match=said) as raised:
        use(folder)
    assert raised.value.exit_code == 3
    assert "\n" not in str(raised.value)


def test_a_flipped_page_of_a_part_is_found_when_it_is_read(folder: Path) -> None:
    part = folder / "displays-00002.parquet"
    content = bytearray(part.read_bytes())
    about = pq.read_metadata(part).row_group(0).column(1)
    content[about.data_page_offset + about.total_compressed_size - 1] ^= 1
    part.write_bytes(content)
    with pytest.raises(SourceError, match=r"displays-00002\.parquet: missing or damaged"):
        load(folder)


def test_it_is_validated_shown_and_replaced_as_one_file_is(folder: Path, tmp_path: Path) -> None:
    assert validate(folder)["ok"]
    assert show(folder)["log"]["displays"] == 900
    refuse_other(folder)
    with pytest.raises(OutputExistsError, match="is a converted log"):
        refuse_inside_log(folder / "run1")
    convert("synthetic", folder, limit=50, overwrite=True)
    assert sorted(path.name for path in folder.glob("displays*")) == ["displays.parquet"]


def test_a_part_put_in_place_of_another_after_opening_is_told(folder: Path) -> None:
    log = load(folder)
    (folder / "displays-00003.parquet").touch()
    with pytest.raises(SourceError, match=r"displays-00003\.parquet: it changed since the log was opened"):
        log.column("time")
