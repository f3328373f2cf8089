"""Text in the encoding it was saved in: the same log, or one line that names the byte."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest

from evaluator.datasets import load
from evaluator.errors import LogError, SourceError, SpecError
from evaluator.reading import frames as scan
from evaluator.reading import text
from evaluator.reading.delay_file import read_delay_file
from evaluator.reading.options import DelayFileOptions
from evaluator.reading.spec import parse_spec
from tests.reading.sources import dataset, spec_data, write_rows

ROWS = ["t,ad,sold", *[f"{i},{'Café' if i % 3 else 'Über'},{i + 5 if i % 5 == 0 else ''}" for i in range(2_100)]]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "CHUNK_ROWS", 1_000)
    monkeypatch.setattr(text, "PIECE", 1_021)  # no multiple of any character's width


def written(folder: Path, content: bytes, *, files: str = "log.csv", encoding: str | None = None) -> Path:
    spec = dataset(folder, source={"files": files, "encoding": encoding})
    (folder / files).write_bytes(gzip.compress(content) if files.endswith(".gz") else content)
    return spec


def refused(spec: Path) -> str:
    with pytest.raises(SourceError) as raised:
        load(spec)
    assert raised.value.exit_code == 3
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("encoding", "files"),
    [
        ("utf-8-sig", "log.csv.gz"),
        ("windows-1252", "log.csv"),
        ("utf-16", "log.csv.gz"),
        ("utf-16-be", "log.csv"),
        ("cp037", "log.csv"),
        ("gb18030", "log.csv.gz"),
    ],
)
def test_the_log_does_not_depend_on_the_encoding(tmp_path: Path, encoding: str, files: str) -> None:
    (tmp_path / "utf8").mkdir()
    (tmp_path / "other").mkdir()
    expected = load(dataset(tmp_path / "utf8", ROWS))
    spec = written(tmp_path / "other", "\n".join(ROWS).encode(encoding), files=files, encoding=encoding)
    assert load(spec).displays.equals(expected.displays)
    assert load(spec).actions.column("label").to_pylist() == ["Café", "Über"]
    assert len(load(spec, limit=10)) == 10


@pytest.mark.parametrize("files", ["log.csv", "log.csv.gz"])
@pytest.mark.parametrize("row", [0, 1, 1_500, 2_099])
def test_latin1_where_utf8_is_expected(tmp_path: Path, files: str, row: int) -> None:
    plain = [line.replace("é", "e").replace("Ü", "U") for line in ROWS]
    before = "\n".join([*plain[: row + 1], f"{row},Caf"]).encode()
    content = before + "é,\n".encode("latin-1") + "\n".join(plain[row + 2 :]).encode()
    message = refused(written(tmp_path, content, files=files))
    unzipped = " (unzipped)" if files.endswith(".gz") else ""
    assert f"{tmp_path / files} line {row + 2}{unzipped}: byte 0xe9 at offset {len(before):,}, " in message
    assert f"after '{row},Caf', is not utf-8 text" in message
    assert 'encoding = "windows-1252" (or "latin-1") in [source]' in message


@pytest.mark.parametrize(
    ("encoding", "illegal"),
    [
        ("ascii", b"\xe9"),
        ("windows-1252", b"\x81"),
        ("shift_jis", b"\x80"),
        ("gb18030", b"\xff"),
        ("utf-16-le", b"\x00\xdc"),
    ],
)
@pytest.mark.parametrize("row", [3, 2_000])
def test_byte_that_is_illegal_in_the_declared_encoding(tmp_path: Path, encoding: str, illegal: bytes, row: int) -> None:
    plain = [line.replace("é", "e").replace("Ü", "U") for line in ROWS]
    before = "\n".join([*plain[:row], "1,Caf"]).encode(encoding)
    content = before + illegal + "\n".join(["", *plain[row:]]).encode(encoding)
    message = refused(written(tmp_path, content, encoding=encoding))
    assert f"log.csv line {row + 1}: byte 0x{illegal[0]:02x} at offset {len(before):,}, after '1,Caf'," in message
    assert f"not {encoding} text. Hint: the spec says encoding = '{encoding}'" in message


def test_utf16_is_recognised(tmp_path: Path) -> None:
    assert 'encoding = "utf-16" in [source]' in refused(written(tmp_path, "\n".join(ROWS).encode("utf-16")))
    plain = "t,ad,sold\n1,a,2\n"
    assert "utf-16-le" in refused(written(tmp_path, plain.encode("utf-16-le")))
    assert "utf-16-le" in refused(written(tmp_path, plain.encode("utf-16-le"), encoding="utf-16"))
    assert "line 2: byte 0x0a at offset" in refused(written(tmp_path, plain.encode("utf-16")[:-1], encoding="utf-16"))


@pytest.mark.parametrize("name", ["hex", "rot13", "punycode", "idna", "undefined", "latin-9000", "", "a\0b", "base64"])
def test_no_text_encoding(name: str) -> None:
    for data in (
        spec_data(source={"encoding": name}),
        spec_data(display={"id": "i"}, conversion={"source": {"files": "c", "display": "d", "encoding": name}}),
    ):
        with pytest.raises(SpecError, match="no text encoding"):
            parse_spec(data)


@pytest.mark.parametrize("name", ["é", '"', "\n", "\r", "ab", ""])
def test_no_delimiter(name: str) -> None:
    with pytest.raises(SpecError, match="delimiter"):
        parse_spec(spec_data(source={"delimiter": name}))


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    content = "\n".join([*ROWS[:2_000], "7,Café,x", *ROWS[2_000:]])
    with pytest.raises(LogError, match=r"log\.csv line 2001: 'x'"):
        load(written(tmp_path, content.encode("utf-16"), encoding="utf-16"))
    ragged = "\n".join([*ROWS[:2_000], "7,Café,8,9", *ROWS[2_000:]])
    assert "log.csv.gz line 2001: 4 cells where 3" in refused(
        written(tmp_path, ragged.encode("latin-1"), files="log.csv.gz", encoding="latin-1")
    )


def test_truncated_gzip_in_another_encoding(tmp_path: Path) -> None:
    spec = written(tmp_path, "\n".join(ROWS).encode("latin-1"), files="log.csv.gz", encoding="latin-1")
    file = tmp_path / "log.csv.gz"
    file.write_bytes(file.read_bytes()[:-9])
    assert "truncated or damaged gzip" in refused(spec)


def test_second_table_has_an_encoding_of_its_own(tmp_path: Path) -> None:
    source = {"files": "sales.csv", "display": "shown", "encoding": "utf-16"}
    spec = dataset(
        tmp_path, ["id,t,ad", "é,1,a", "b,2,b"], display={"id": "id"}, conversion={"time": "when", "source": source}
    )
    (tmp_path / "sales.csv").write_bytes("shown,when\né,4\n".encode("utf-16"))
    assert load(spec).conversions.num_rows == 1
    (tmp_path / "sales.csv").write_bytes(b"shown,when\n\xe9,4\n")
    assert "sales.csv: not utf-16 text" in refused(spec)


def test_delay_file(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_bytes(b"delay,shop\n" + b"3,a\n" * 5_000 + b"4,\xe9\n")
    with pytest.raises(SourceError, match="line 5002: byte 0xe9 at offset 20,013, after '4,', is not utf-8"):
        read_delay_file(tmp_path / "delays.csv", DelayFileOptions(delay_column="delay", by="shop"))


def test_copies_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    spec = written(tmp_path, "\n".join([*ROWS, "1,2,3,4"]).encode("latin-1"), encoding="latin-1")
    refused(spec)
    load(spec, limit=5)
    assert list((tmp_path / "copies").iterdir()) == []


HEADERS = [
    ('t,"a ""b"" c",sold', 'a "b" c', 2),
    ('\ufeff"t","a ""b"" c","sold"', 'a "b" c', 2),
    ('\ufefft,"a\n""b"" c",sold', 'a\n"b" c', 3),
    ('"t","a,b",sold', "a,b", 2),
    ("t,ad,sold,", "ad", 2),
    ('t,"a"d,sold', "ad", 2),
]


@pytest.mark.parametrize(("header", "name", "line"), HEADERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_names_in_quotes(tmp_path: Path, header: str, name: str, line: int, encoding: str) -> None:
    more = "," if header.endswith(",") else ""
    spec = dataset(tmp_path, source={"encoding": encoding}, display={"action": name})
    (tmp_path / "log.csv").write_bytes("\n".join([header, f"1,x,3{more}", f"2,y,{more}"]).encode(encoding))
    assert load(spec).actions.column("label").to_pylist() == ["x", "y"]
    (tmp_path / "log.csv").write_bytes("\n".join([header, f"1,x,oops{more}"]).encode(encoding))
    with pytest.raises(LogError, match=rf"log\.csv line {line}: 'oops'"):
        load(spec)


@pytest.mark.parametrize(
    "content",
    ['"t', 't,a"d,sold\n1,2,3\n', ' "t\nx",ad,sold\n1,2,3\n', "x" * 200_000, "\n\nt,ad,sold\n1,2,3\n", "t,ad,sold,,\n"],
)
def test_header_that_cannot_be_read(tmp_path: Path, content: str) -> None:
    assert "log.csv" in refused(written(tmp_path, content.encode()))


def test_files_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = dataset(tmp_path, ROWS)
    with pytest.raises(SourceError, match="File name too long"):
        load(spec, path="x" * 300)
    opened = Path.open

    def forbidden(path: Path, *words: object, **named: object) -> object:
        if path.name == "log.csv":
            raise PermissionError(13, "Permission denied")
        return opened(path, *words, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", forbidden)
    assert "log.csv: cannot be read (Permission denied)" in refused(spec)


def test_line_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATE_LINE_MAX", "1000")
    write_rows(tmp_path / "log.csv", ["," * 5_000])
    spec = written(tmp_path, b"," * 5_000)
    assert "line 1: no row of a table, it has more than 1,000 characters" in refused(spec)
