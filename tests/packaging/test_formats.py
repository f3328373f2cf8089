"""``docs/reference/formats.md`` names every format of the code, and no other; what it tells users to run works."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import evaluator
from evaluator import __version__
from evaluator.reading.log_folders import FILES, READS, SCHEMA_VERSION
from evaluator.reports.manifest import write_json, write_manifest

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
PACKAGE = Path(evaluator.__file__).parent


def cells(row: str) -> list[str]:
    """What the line of a table that begins so says."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_names_every_format_of_the_code_and_no_other() -> None:
    quoted = re.compile(r'"((?:evaluate\.[\w-]+|delay-fit)/\d+)"')
    in_code = {name for file in PACKAGE.rglob("*.py") for name in quoted.findall(file.read_text("utf-8"))}
    assert "evaluate.replay/2" in in_code
    assert set(re.findall(r"`((?:evaluate\.[\w-]+|delay-fit)/\d+)`", PAGE)) == in_code


def test_a_name_is_of_one_thing() -> None:
    read_again, results = PAGE.split("## Results")
    names = re.compile(r"`(evaluate\.[\w-]+)/\d+`")
    assert "evaluate.policy" in names.findall(read_again)
    both = set(names.findall(read_again)) & set(names.findall(results))
    assert not both, "a file that is read again and a document that is printed have one name"


def test_marked_schemas_are_those_there_are() -> None:
    marked = set(re.findall(r"`evaluate\.(\w+)/\d+` \*", PAGE))
    assert marked == {file.name.split(".")[0] for file in (PACKAGE / "reports").glob("*.schema.json")}


def test_versions_of_the_converted_log() -> None:
    _, _, writes, reads = cells("converted log")
    assert writes == f"`schema_version` {SCHEMA_VERSION}"
    assert reads == f"`schema_version` {', '.join(map(str, READS))}"
    assert cells("format")[2:] == [f"{__version__} writes", f"{__version__} reads"]
    for name in FILES:
        assert cells(f"`{name}`")


def test_a_result_is_verified_by_the_line_on_the_page(tmp_path: Path) -> None:
    line = re.search(r"\(cd run1 && (python .*)\)\n```", PAGE)
    assert line
    write_json(tmp_path / "result.json", {"value": 1})
    (tmp_path / "delays.html").write_bytes(b"<p>")
    write_manifest(tmp_path, source={})
    verified = subprocess.run(line[1], shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (verified.returncode, verified.stdout) == (0, "delays.html: OK\nresult.json: OK\n")
    write_json(tmp_path / "result.json", {"value": 2})
    assert subprocess.run(line[1], shell=True, cwd=tmp_path, capture_output=True).returncode != 0
