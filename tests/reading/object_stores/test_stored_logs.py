"""A converted log in an object store is the one on disk; it is there whole, or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
import pytest

import evaluator
from evaluator import load
from evaluator.datasets import convert, show, validate
from evaluator.errors import OutputExistsError, OutputInUseError, SourceError, UsageError
from evaluator.log import StoredLog
from evaluator.log.fingerprint import content_hash
from evaluator.reading import converting
from evaluator.reading.sources.stores import Store, open_store
from tests.cli.runs import evaluate
from tests.reading.object_stores.server import Bucket
from tests.reading.test_converting_in_parts import pieces_of


@pytest.fixture(autouse=True)
def _of_environment(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)


@pytest.fixture
def local(tmp_path: Path) -> Path:
    convert("synthetic", tmp_path / "log", limit=3000)
    return tmp_path / "log"


def names(bucket: Bucket) -> set[str]:
    return {meta["path"] for page in obstore.list(bucket.store) for meta in page}


def test_a_log_in_a_store_is_the_one_on_disk(local: Path, bucket: Bucket) -> None:
    address = f"s3://{bucket.name}/logs/shop"
    done = convert("synthetic", address, limit=3000)
    there, here = load(address), load(local)
    assert isinstance(there, StoredLog)
    assert content_hash(there) == content_hash(here) == content_hash(done.log)
    assert there.displays.equals(here.displays)
    assert names(bucket) == {f"logs/shop/{path.name}" for path in local.iterdir()}
    for options in ({"limit": 700}, {"actions": "top:3"}):
        a, b = load(address, **options), load(local, **options)  # type: ignore[arg-type]
        assert a.displays.equals(b.displays)
        assert a.conversions.equals(b.conversions)
    assert show(address)["log"] == show(local)["log"]
    assert validate(address)["ok"]
    assert load(Path(address)).meta == here.meta  # one slash is left of it
    replays = [evaluator.replay(log, "otflinucb", window=200).to_dict() for log in (address, local)]
    assert replays[0] == replays[1]


def test_a_log_in_parts_is_the_one_on_disk(tmp_path: Path, bucket: Bucket) -> None:
    import polars as pl

    from tests.reading.object_stores.buckets import displays
    from tests.reading.sources import write_spec

    (tmp_path / "files").mkdir()
    for i in range(4):
        displays(start=300 * i).write_parquet(tmp_path / "files" / f"{i}.parquet")
    spec = write_spec(tmp_path, source={"files": "files"})
    with pieces_of(rows=100, group=32):
        convert(spec, tmp_path / "log", jobs=2)
        convert(spec, f"s3://{bucket.name}/log", jobs=2)
    here, there = load(tmp_path / "log"), load(f"s3://{bucket.name}/log")
    assert isinstance(there, StoredLog)
    assert len(there.paths) > 5
    assert content_hash(here) == content_hash(there)
    assert pl.DataFrame(here.displays).equals(pl.DataFrame(there.displays))


def test_objects_are_converted_in_parts_from_store_to_store(tmp_path: Path, bucket: Bucket) -> None:
    from tests.reading.object_stores.buckets import displays, spec_of, write

    for i in range(4):
        write(displays(start=300 * i), tmp_path / "source" / f"{i}.parquet")
    bucket.put_folder(tmp_path / "source")
    spec = spec_of(tmp_path, bucket, "*.parquet")
    one = content_hash(convert(spec, tmp_path / "one").log)
    with pieces_of(rows=100, group=65_536):
        two = convert(spec, f"s3://{bucket.name}/two", jobs=2).log
    assert content_hash(two) == one


def test_workers_open_it_by_its_address(local: Path, bucket: Bucket) -> None:
    address = f"s3://{bucket.name}/log"
    convert(local, address)
    asked: dict[str, Any] = {"window": 200, "horizon": 200, "bootstrap": 20}
    with ThreadPoolExecutor(2) as executor:
        for log in (address, load(address)):
            there = evaluator.compare(log, ["ucb1", "linucb"], executor=executor, **asked)
            assert there.to_dict() == evaluator.compare(local, ["ucb1", "linucb"], **asked).to_dict()


def test_who_is_killed_before_the_end_leaves_no_log(
    local: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"s3://{bucket.name}/log"
    write = Store.write

    def killed(self: Store, key: str, content: Path, *, new: bool = False) -> str:
        if key.endswith("displays.parquet") or new:
            raise KeyboardInterrupt
        return write(self, key, content, new=new)

    bucket.put("log/displays-00007.parquet", b"of a log in parts, which was killed")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            convert(local, address)
    assert "log/actions.parquet" in names(bucket)
    with pytest.raises(SourceError, match="no converted log"):
        load(address)
    convert(local, address)
    assert names(bucket) == {f"log/{path.name}" for path in local.iterdir()}
    assert validate(address)["ok"]


def test_of_two_that_write_one_log_one_is_told(local: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"s3://{bucket.name}/log"
    upload = converting.refuse_taken

    def overtaken(folder: Any) -> None:
        upload(folder)
        bucket.put("log/meta.json", local / "meta.json")

    monkeypatch.setattr(converting, "refuse_taken", overtaken)
    with pytest.raises(OutputExistsError, match=r"log exists"):
        convert(local, address)


@pytest.mark.parametrize("when", ["before the end", "at the end"])
def test_two_that_overtake_each_other_leave_no_broken_log(
    local: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    address = f"s3://{bucket.name}/log"
    write = Store.write

    def overtaken(self: Store, key: str, content: Path, *, new: bool = False) -> str:
        if new and when == "at the end":
            bucket.put("log/displays.parquet", b"of another")
        tag = write(self, key, content, new=new)
        if key.endswith("displays.parquet") and when == "before the end":
            bucket.put("log/displays.parquet", b"of another")
        return tag

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", overtaken)
        with pytest.raises(OutputInUseError, match="another command is writing a log there"):
            convert(local, address)
    assert "log/meta.json" not in names(bucket)
    convert(local, address)
    assert validate(address)["ok"]


def test_a_store_that_fails_is_not_a_damaged_log(local: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"s3://{bucket.name}/log"
    convert(local, address)
    read = Store.read
    for name in ("meta.json", "events.parquet", "displays.parquet"):

        def failing(self: Store, listed: Any, start: int, end: int, name: str = name) -> bytes:
            if listed.key.endswith(name):
                raise SourceError(f"{listed.key}: the object store failed (500).", remedy="try again later.")
            return read(self, listed, start, end)

        monkeypatch.setattr(Store, "read", failing)
        with pytest.raises(SourceError) as raised:
            load(address)
        assert str(raised.value) == f"log/{name}: the object store failed (500). Hint: try again later."
    monkeypatch.setattr(Store, "read", read)
    log = load(address)
    monkeypatch.setattr(Store, "read", failing)
    with pytest.raises(SourceError) as raised:
        log.displays  # noqa: B018
    assert str(raised.value) == "log/displays.parquet: the object store failed (500). Hint: try again later."


def test_a_log_that_changed_is_not_read_on(local: Path, bucket: Bucket) -> None:
    address = f"s3://{bucket.name}/log"
    convert(local, address)
    log = load(address)
    bucket.put("log/displays.parquet", local / "actions.parquet")
    with pytest.raises(SourceError, match=r"displays\.parquet: it changed since the log was opened"):
        log.displays  # noqa: B018
    bucket.delete("log/displays.parquet")
    with pytest.raises(SourceError, match=r"displays\.parquet: it changed since the log was opened"):
        log.displays  # noqa: B018
    with pytest.raises(SourceError, match=r"log/displays\.parquet: missing or damaged \(No such file"):
        load(address)


@pytest.mark.parametrize("name", ["displays.parquet", "events.parquet", "meta.json"])
def test_a_damaged_object_is_told(local: Path, bucket: Bucket, name: str) -> None:
    address = f"s3://{bucket.name}/log"
    convert(local, address)
    content = bytearray((local / name).read_bytes())
    content[len(content) // 3] ^= 4
    bucket.put(f"log/{name}", bytes(content))
    with pytest.raises(SourceError, match=f"log/{name}"):
        validate(address)
    bucket.put(f"log/{name}", bytes(content[:-9]))
    with pytest.raises(SourceError, match=f"log/{name}"):
        load(address)


def test_other_objects_among_its_own_are_told(local: Path, bucket: Bucket) -> None:
    convert(local, f"s3://{bucket.name}/log")
    bucket.put("log/notes.txt", b"mine")
    with pytest.raises(SourceError, match=r"notes\.txt is no file of a converted log"):
        validate(f"s3://{bucket.name}/log")


def test_nothing_of_others_is_written_over(local: Path, bucket: Bucket) -> None:
    convert(local, f"s3://{bucket.name}/log")
    bucket.put("mine/notes.txt", b"mine")
    for place, said in (
        ("log", "log exists"),
        ("log/within", "would lie in s3://.*/log, which is a converted log"),
        ("mine", "holds notes.txt, which is not of a converted log"),
        ("", "holds log/actions.parquet"),
    ):
        with pytest.raises(OutputExistsError, match=said):
            convert(local, f"s3://{bucket.name}/{place}")
    with pytest.raises(UsageError, match="cannot replace a log in one step"):
        convert(local, f"s3://{bucket.name}/other", overwrite=True)


def test_what_is_wrong_with_an_address_is_one_line(
    local: Path, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, code, said in (
        (["replay", f"s3://{bucket.name}/none", "-p", "ucb1"], 3, "there is nothing"),
        (["replay", "s3://no-bucket/log", "-p", "ucb1"], 3, "no bucket 'no-bucket'"),
        (["replay", f"s3://{bucket.name}/spec.toml", "-p", "ucb1"], 3, "a spec is read from disk"),
        (["replay", f"s3://{bucket.name}/a/../log", "-p", "ucb1"], 3, "no store has a folder . or .."),
        (["replay", "ftp://host/log", "-p", "ucb1"], 3, "no address of an object store"),
        (["replay", "s3://me:secret@bucket/log", "-p", "ucb1"], 2, "holds a secret"),
        (["datasets", "convert", str(local), "s3://no-bucket/log"], 3, "no bucket 'no-bucket'"),
        (["simulate", f"s3://{bucket.name}/none", "-p", "ucb1"], 3, "there is nothing"),
    ):
        done = evaluate(*words)
        assert done.code == code, done.err
        assert said in done.err
        assert len(done.err.strip().splitlines()) == 1
        assert "storage." not in done.err
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    done = evaluate("replay", f"s3://{bucket.name}/none", "-p", "ucb1")
    assert (done.code, "does not answer" in done.err, "AWS_ENDPOINT_URL" in done.err) == (3, True, True)


@pytest.mark.parametrize("key", ["elsewhere/displays.parquet", "log2/displays.parquet", "displays.parquet"])
def test_a_store_that_lists_what_was_not_asked_for_is_one_line(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    listed = {"path": key, "size": 7, "e_tag": "a", "last_modified": None}
    monkeypatch.setattr("obstore.list", lambda client, prefix: [[listed]])
    run = evaluate("datasets", "show", f"s3://{bucket.name}/log")
    said = f"s3://{bucket.name}/log: the store lists {key}, which is not in it."
    assert (run.code, run.err.count("\n")) == (3, 1), run.err
    assert said in run.err


@pytest.mark.parametrize("folder", ["log", "a b#%c~é+&'(d)", "a%20b", ""])
def test_what_is_in_a_folder_of_any_name_is_listed(bucket: Bucket, folder: str) -> None:
    key = f"{folder}/x.csv".lstrip("/")
    bucket.put(key, b"a")
    bucket.put("log2/x.csv", b"a")
    store, found = open_store(f"s3://{bucket.name}/{folder}", None)
    assert [one.key for one in store.objects(found.strip("/"))] == [*sorted([key, *([] if folder else ["log2/x.csv"])])]
