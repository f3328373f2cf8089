from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.errors import OutputExistsError
from evaluator.outputs.atomic import refuse_foreign, refuse_sources


@pytest.fixture
def old(tmp_path: Path) -> Path:
    folder = tmp_path / "old"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        (folder / name).write_text("")
    return folder


def is_parquet(path: Path) -> bool:
    return path.suffix == ".parquet"


@pytest.mark.parametrize("kind", ["another file", "folder", "link", "dangling link"])
def test_what_is_not_ours_is_named(old: Path, tmp_path: Path, kind: str) -> None:
    refuse_foreign(old, is_parquet, kind="a table")
    new = old / ("chapter1.tex" if kind == "another file" else "c.parquet")
    match kind:
        case "another file":
            new.write_text("")
        case "folder":
            new.mkdir()
        case "link":
            new.symlink_to(old / "a.parquet")
        case _:
            new.symlink_to(tmp_path / "gone")
    with pytest.raises(OutputExistsError, match=rf"old holds {new.name}, which is not of a table: it would be deleted"):
        refuse_foreign(old, is_parquet, kind="a table")


def test_sources_inside_are_refused_by_whatever_name(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder-link").symlink_to(old)
    (tmp_path / "file-link").symlink_to(old / "a.parquet")
    (old / "inner").mkdir()
    monkeypatch.chdir(old / "inner")
    inside = [
        old, old / "a.parquet", tmp_path / "folder-link" / "a.parquet", tmp_path / "file-link",
        tmp_path / "other" / ".." / "old" / "a.parquet", Path("../a.parquet"), Path(".."), Path("."), Path("absent"),
    ]  # fmt: skip
    (tmp_path / "other").mkdir()
    for target in (old, tmp_path / "folder-link", Path("..")):
        for source in inside:
            with pytest.raises(OutputExistsError, match=r"would replace .*, which is read"):
                refuse_sources(target, [tmp_path, source])


def test_sources_elsewhere_are_not_in_the_way(old: Path, tmp_path: Path) -> None:
    (tmp_path / "older").mkdir()
    (tmp_path / "old.csv").write_text("")
    refuse_sources(old, [tmp_path, tmp_path / "older", tmp_path / "old.csv", old / ".." / "old.csv", Path("absent")])
