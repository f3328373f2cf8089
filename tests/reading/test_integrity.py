"""A converted log verifies itself: what is damaged is refused by name, and never a changed number."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import replay
from evaluator.datasets import convert, load, show, validate
from evaluator.errors import SourceError
from evaluator.log import EventKind, Log, LogMeta, Selection, StoredLog
from evaluator.log.fingerprint import content_hash
from evaluator.reading.canonical import UNVERIFIED, open_canonical, write_canonical
from evaluator.reading.log_folders import (
    CONVERSIONS,
    EVENTS,
    META,
    QUARANTINE,
    READS,
    TABLES,
    _About,
    _Encoded,
    _Kind,
    _Outcome,
    _WithOutcomes,
    read_meta,
)
from tests.logs import build_log
from tests.reading.earlier import rewrite
from tests.reading.sources import ROWS, dataset

N = 300


def made_log(seed: int = 0) -> Log:
    """A log with a column of every kind."""
    rng = np.random.default_rng(seed)
    shown = np.sort(rng.choice(N, 60, replace=False))
    return build_log(
        time=np.sort(rng.integers(0, 300, N)),
        action=rng.choice(3, N),
        conversion_display=shown,
        conversion_time=[400] * 60,
        n_actions=3,
        context=rng.random((N, 2)).astype(np.float32),
        action_set=rng.random((N, 3, 2)).astype(np.float32),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    write_canonical(made_log(), made)
    return made


def contents(folder: Path) -> Any:
    """All that a log holds, or the error that refuses it."""
    try:
        log = open_canonical(folder)
        return log.meta, log.displays, log.conversions, log.actions
    except SourceError as error:
        return error


def test_a_folder_says_all_that_a_log_says_of_itself() -> None:
    """The format keeps a list of its own, as what a version may hold does not change; this finds where they part."""
    own = {field.name: field for field in dataclasses.fields(LogMeta)}
    assert "encoder" in _Encoded.model_fields  # since the third version
    assert "outcomes" in _WithOutcomes.model_fields  # since the fourth
    del own["encoder"], own["outcomes"]
    assert set(_Kind.model_fields) - set(_Outcome.model_fields) == {"reward", "told", "value_min"}  # since the sixth
    assert list(_Kind.model_fields) == [field.name for field in dataclasses.fields(EventKind)]
    written = {name: field for name, field in _About.model_fields.items() if name != "schema_version"}
    assert list(written) == list(own)
    for name, field in written.items():
        if name != "notes":  # which every folder says
            default = own[name].default
            assert field.is_required() == (default is own[name].default_factory is dataclasses.MISSING), name
            assert field.is_required() or field.get_default(call_default_factory=True) in (default, {}), name


def flipped(path: Path, place: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def signed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change meta.json as one could who knows its checksum."""
    document = json.loads((folder / META).read_text())
    del document["checksum"]
    change(document)
    document["checksum"] = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    (folder / META).write_text(json.dumps(document))


def test_rows_that_were_validated_when_written_are_not_gone_through_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, scans, selected = load(folder), [], StoredLog._selected
    monkeypatch.setattr(StoredLog, "_selected", lambda log, *what: scans.append(what) or selected(log, *what))
    for options in ({}, {"limit": 100}, {"actions": "top:2"}):
        part = load(folder, **options)
        assert len(scans) == (options == {"actions": "top:2"}), options  # which numbers the events of what is left
        found = replay(part, "random", seed=1).to_dict()
        signed(folder, lambda said: said.update(facts=None))
        scans.clear()
        again = load(folder, **options)
        assert scans
        assert again.events.equals(part.events)
        assert replay(again, "random", seed=1).to_dict() == found
        signed(folder, lambda said: said.update(facts=log.facts.to_dict()))
        scans.clear()


@pytest.mark.parametrize(
    "facts",
    [
        lambda told: {"shown": [told["shown"][1] + 1, told["shown"][0] - 1, *told["shown"][2:]]},
        lambda told: {"first_time": told["first_time"] + 10**6},
        lambda told: {"first_time": told["first_time"] - 1},
        lambda told: {"last_time": told["last_time"] + 1},
    ],
)
def test_false_facts_are_told_as_rows_pass(folder: Path, facts: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    signed(folder, lambda said: said["facts"].update(facts(said["facts"])))
    log = load(folder)
    with pytest.raises(
        SourceError, match=r"displays.parquet: missing or damaged \(its rows are not those of"
    ) as raised:
        replay(log, "random")
    assert raised.value.exit_code == 3
    signed(folder, lambda said: said["facts"]["shown"].append(1))
    with pytest.raises(SourceError, match=r"meta.json: missing or damaged \(its facts are those of other rows"):
        load(folder)


def test_rows_with_another_action_than_facts_know_reach_no_loop(folder: Path) -> None:
    facts, sound = read_meta(folder).facts, load(folder)
    assert facts is not None
    short = sound.changed(facts=dataclasses.replace(facts, shown=(sum(facts.shown),)))
    with pytest.raises(SourceError, match="its rows are not those of"):
        short.column("action")


def test_a_missing_propensity_is_told_as_rows_pass(tmp_path: Path) -> None:
    log, sound, short = made_log(), tmp_path / "sound", tmp_path / "short"
    p = log.column("propensity").copy()
    p[7] = np.nan
    at = log.schema.get_field_index("propensity")
    for folder, of in ((sound, log), (short, log.changed(displays=log.displays.set_column(at, "propensity", [p])))):
        folder.mkdir()
        write_canonical(of, folder)
    facts = read_meta(sound).facts
    assert facts is not None
    assert read_meta(short).facts is None
    signed(short, lambda said: said.update(facts=facts.to_dict()))
    with pytest.raises(SourceError, match="its rows are not those of which"):
        replay(load(short), "random")


@pytest.mark.parametrize("name", [*TABLES, META])
def test_a_flipped_bit_is_refused_or_changes_nothing(folder: Path, name: str) -> None:
    path, sound = folder / name, contents(folder)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for place in rng.choice(len(whole), 20, replace=False):
        flipped(path, place, int(rng.integers(8)))
        found = contents(folder)
        if isinstance(found, SourceError):
            refused += 1
            assert str(path) in str(found)
            assert "convert the dataset again" in str(found)
            assert "\n" not in str(found)
        else:
            assert found == sound, f"byte {place}"
        path.write_bytes(whole)
    assert refused > 15
    assert contents(folder) == sound


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_footer_is_refused_though_it_can_be_read(folder: Path, name: str) -> None:
    path = folder / name
    before, writer, after = path.read_bytes().rpartition(b"parquet-cpp")
    path.write_bytes(before + writer.upper() + after)
    with pytest.raises(SourceError, match=rf"{name}: missing or damaged \(its footer was changed\)"):
        open_canonical(folder)


@pytest.mark.parametrize("name", TABLES)
def test_a_byte_that_nobody_reads(folder: Path, name: str) -> None:
    """Displays are verified as far as they are read, and all of them by `validate`; the other tables on every open."""
    flipped(folder / name, 0, 0)
    said = rf"{name}: missing or damaged \(its checksum is not that of what was written\)"
    with pytest.raises(SourceError, match=said):
        validate(folder)
    if name != "displays.parquet":
        with pytest.raises(SourceError, match=said):
            open_canonical(folder)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kept", [0, 3, 0.5, 0.999])
def test_a_file_cut_short_is_refused(folder: Path, name: str, kept: float) -> None:
    path = folder / name
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept if kept > 1 else kept * len(whole))])
    with pytest.raises(SourceError, match=rf"{name}: missing or damaged \([\d,]+ bytes where {len(whole):,} were"):
        open_canonical(folder)


@pytest.mark.parametrize("name", TABLES)
def test_a_sound_file_of_another_log_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    log = made_log(seed=1)
    write_canonical(log.with_conversions(log.conversions.slice(0, 50)), other)
    if name == "actions.parquet":  # both logs have the same
        table = (other / name).read_bytes()
        (other / name).write_bytes(table[:-1] + b"2")
    shutil.copy(other / name, folder / name)
    with pytest.raises(SourceError, match=f"{name}: missing or damaged"):
        load(folder)


def test_pages_damaged_while_a_log_is_in_use_are_refused(folder: Path) -> None:
    """Contexts are not read when a log is opened."""
    before, path = open_canonical(folder), folder / "displays.parquet"
    flipped(path, _column(path, "context") + 100, 3)
    with pytest.raises(SourceError, match=r"displays.parquet: it changed since the log was opened"):
        before.column("context")
    log = open_canonical(folder)
    assert log.conversions == before.conversions
    with pytest.raises(SourceError, match=r"displays.parquet: missing or damaged \(could not verify page") as raised:
        log.column("context")
    assert raised.value.exit_code == 3
    with pytest.raises(SourceError, match="its checksum is not that of what was written"):
        validate(folder)


def test_fewer_rows_than_written_are_refused(folder: Path) -> None:
    sound, other = open_canonical(folder), folder.parent / "other"
    other.mkdir()
    write_canonical(made_log().until(200), other)
    for name in ("displays.parquet", "events.parquet"):
        shutil.copy(other / name, folder / name)
    short = StoredLog(sound.paths, Selection(N, N), events=sound.conversions, actions=sound.actions, meta=sound.meta)
    with pytest.raises(SourceError, match="200 rows where 300 were written"):
        short.column("time")
    signed(folder, lambda said: said["files"].update(json.loads((other / META).read_text())["files"]))
    signed(folder, lambda said: said["files"]["displays.parquet"].update(rows=300))
    with pytest.raises(SourceError, match=r"displays.parquet: .*200 rows where 300 were written"):
        open_canonical(folder)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tick": "fortnight"}, "tick: String should match pattern '^(ns|us|"),
        ({"observed_until": "400"}, "observed_until: expected a valid integer"),
        ({"observed_until": 400.0}, "observed_until: "),
        ({"observed_until": True}, "observed_until: "),
        ({"observed_until": 2**63}, "observed_until: "),
        ({"attribution_window": -1}, "attribution_window: "),
        ({"propensity": "guessed"}, "propensity: "),
        ({"reward_max": float("nan")}, "reward_max: "),
        ({"reward_max": True}, "reward_max: "),
        ({"sampling_rate": 0}, "sampling_rate: "),
        ({"sampling_rate": 1e-320}, "sampling_rate: "),
        ({"kept_share": 2.0}, "kept_share: "),
        ({"counts": {"rows_read": -1}}, "counts.rows_read: "),
        ({"counts": {"rows_read": float("inf")}}, "counts.rows_read: "),
        ({"counts": {"rows_read": 10**400}}, "counts.rows_read: "),
        ({"counts": []}, "counts: "),
        ({"name": None}, "name: "),
        ({"facts": {"shown": [1]}}, "facts.first_time: missing"),
        ({"facts": {"shown": [-1], "first_time": 0, "last_time": 1}}, "facts.shown.0: "),
        ({"notes": "one"}, "notes: "),
        ({"notes": [1]}, "notes.0: "),
        ({"nonsense": 1}, "nonsense: unknown"),
        ({"files": {}}, "files: expected displays.parquet"),
        ({"files": {"../log.csv": 1}}, "files.../log.csv: "),
        ({"schema_version": True}, "schema_version: expected one of 1, 2, 3, 4, 5, 6, 7, 8, got True"),
        ({"schema_version": None}, "schema_version: "),
        ({"schema_version": 0}, "schema_version: "),
        ({"schema_version": "2"}, "schema_version: "),
    ],
)
def test_meta_takes_no_nonsense(folder: Path, change: dict[str, Any], field: str) -> None:
    signed(folder, lambda said: said.update(change))
    with pytest.raises(SourceError) as raised:
        open_canonical(folder)
    assert f"meta.json: missing or damaged ({field}" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 600


def test_meta_is_not_changed_by_hand(folder: Path) -> None:
    path = folder / META
    path.write_text(path.read_text().replace('"sampling_rate": 1.0', '"sampling_rate": 0.5'))
    with pytest.raises(SourceError, match=r"meta.json: missing or damaged \(it was changed after it was written\)"):
        open_canonical(folder)


@pytest.mark.parametrize("text", ["", "null", "[]", "[" * 100_000, '{"schema_version": 1' + "0" * 5_000 + "}", "\xff"])
def test_meta_that_is_no_object_is_refused(folder: Path, text: str) -> None:
    (folder / META).write_text(text, encoding="latin-1")
    with pytest.raises(SourceError, match=r"meta.json: missing or damaged"):
        open_canonical(folder)


def test_meta_may_be_laid_out_anew(folder: Path) -> None:
    sound = contents(folder)
    (folder / META).write_text(json.dumps(json.loads((folder / META).read_text())))
    assert contents(folder) == sound


@pytest.mark.parametrize(("by", "reader"), [("delayed-replay 7.1", "delayed-replay 7.1"), ("\x1b[2J", "the release")])
def test_a_newer_version_names_what_reads_it(folder: Path, by: str, reader: str) -> None:
    signed(folder, lambda said: said.update(schema_version=max(READS) + 1, written_by=by, more=[1]))
    with pytest.raises(SourceError, match=rf"written by a newer version; .* up to {max(READS)}.*read it with {reader}"):
        open_canonical(folder)


def test_validate_names_what_does_not_belong(folder: Path) -> None:
    assert validate(folder)["ok"]
    (folder / QUARANTINE).write_bytes(b"")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(SourceError, match=r"notes.txt is no file of a converted log \(1 more\)"):
        validate(folder)


def test_rows_left_out_are_verified_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert(dataset(tmp_path, [*ROWS, "9,a,8"]), out, on_error="quarantine", quarantine_at_most=1)
    assert set(read_meta(out).files) == {*TABLES, QUARANTINE}
    assert validate(out)["ok"]
    flipped(out / QUARANTINE, 40, 0)
    assert len(load(out)) == 4  # which does not read them
    with pytest.raises(SourceError, match=f"{QUARANTINE}: missing or damaged"):
        validate(out)


def _column(path: Path, name: str) -> int:
    """Return where in a file the first page of a column starts."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        group = file.metadata.row_group(0)
        columns = [group.column(i) for i in range(group.num_columns)]
    return min(
        column.dictionary_page_offset or column.data_page_offset
        for column in columns
        if column.path_in_schema.startswith(name)
    )


VERSION_1 = Path(__file__).parent / "formats" / "version-1"


def test_the_first_version_opens_to_the_same_values() -> None:
    """Written by the release before the second version."""
    expected = json.loads(VERSION_1.with_suffix(".json").read_text())
    log = load(VERSION_1)
    for table in ("displays", "conversions", "actions"):
        assert getattr(log, table).to_pydict() == expected[table]
    assert log.meta.counts["quarantined"] == 1
    assert type(log.meta.counts["quarantined"]) is int
    assert log.meta.notes == ("1 rows broke a rule and were left out.",)


@pytest.mark.parametrize("policy", ["ucb1", "linucb"])
def test_the_first_version_replays_to_the_same_numbers(policy: str) -> None:
    from evaluator import replay

    expected = json.loads(VERSION_1.with_suffix(".json").read_text())["values"][policy]
    result = replay(load(VERSION_1), policy, window=4)
    assert expected == {"rounds": result.rounds, **{k: getattr(result.value, k) for k in ("estimate", "low", "high")}}


def test_the_first_version_is_said_to_be_unverified(folder: Path) -> None:
    assert validate(VERSION_1)["notes"] == [UNVERIFIED]
    assert show(VERSION_1)["log"]["notes"][-1] == UNVERIFIED
    assert validate(folder)["notes"] == []
    assert UNVERIFIED not in show(folder)["log"]["notes"]


def test_the_first_version_gets_checksums_when_it_is_converted(tmp_path: Path) -> None:
    log, made = load(VERSION_1), convert(VERSION_1, tmp_path / "new").log
    assert (made.displays, made.conversions, made.actions) == (log.displays, log.conversions, log.actions)
    # Which was that of the source.
    assert made.meta == log.with_meta(fingerprint=content_hash(log)).meta != log.meta
    assert validate(tmp_path / "new")["notes"] == []


def test_the_first_version_takes_no_nonsense_either(tmp_path: Path) -> None:
    shutil.copytree(VERSION_1, tmp_path / "old")
    path = tmp_path / "old" / META
    path.write_text(path.read_text().replace('"observed_until": ', '"observed_until": "soon", "x": '))
    with pytest.raises(SourceError, match=r"\(observed_until: expected a valid integer, got 'soon'\)"):
        open_canonical(tmp_path / "old")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("version", READS)
@pytest.mark.parametrize("name", [*TABLES, META])
def test_a_pipe_in_the_place_of_a_file_is_refused(folder: Path, name: str, version: int) -> None:
    if version == 1:
        rewrite(folder, version)
        name = CONVERSIONS if name == EVENTS else name
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert f"{name}: missing or damaged (it is no regular file)." in str(contents(folder))


@pytest.mark.parametrize(("text", "said"), [(None, "No such file or directory"), ("[" * 100_000, "nested too deeply")])
def test_why_meta_is_damaged_is_said_once(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "meta.json").write_text(text)
    with pytest.raises(SourceError) as raised:
        read_meta(tmp_path)
    assert raised.value.what == f"{tmp_path / 'meta.json'}: missing or damaged ({said})."
