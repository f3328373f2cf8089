"""The docs: generated pages are those of the code, links lead somewhere, commands exist, the site builds."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.bench.pictures import speeds
from tests.packaging.test_readme_output import DOCS, ROOT, script

EVERY = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "datasets/README.md")] + sorted(
    DOCS.rglob("*.md")
)
FENCE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
generate = script("generate")
build = script("build")

# What ends a command on a line of a shell.
SHELL = {">", ">>", "|", "||", "<"}


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def slugs(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the built site make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", page), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found.add(slug)
    return found


@pytest.mark.parametrize("page", generate.PAGES)
def test_the_reference_is_what_the_code_says(page: str) -> None:
    stored = (DOCS / "reference" / page).read_text(encoding="utf-8")
    assert stored == generate.page(page), f"run: python docs/generate.py, which writes docs/reference/{page}"


def test_the_reference_has_every_command_option_policy_and_key() -> None:
    commands = generate.page("commands.md")
    for command in ("replay", "compare", "audit", "simulate", "delays", "check", "datasets convert", "policies show"):
        assert f"## evaluate {command}\n" in commands
    assert "`--traffic-share`" in generate.page("options.md")
    assert "### Keys of Display\n" in generate.page("spec.md")
    assert "## otflinucb\n" in generate.page("policies.md")
    assert "## replay\n" in generate.page("api.md")


@pytest.mark.parametrize("file", EVERY, ids=name)
def test_links_lead_somewhere(file: Path) -> None:
    page = file.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^()\s]+)\)", FENCE.sub("", page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        assert there.exists(), f"{name(file)}: {target}"
        if anchor:
            assert anchor in slugs(there.read_text(encoding="utf-8")), f"{name(file)}: {target}"


def test_every_page_can_be_found_from_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md")} - {"index.md"}
    assert pages == {p for p in re.findall(r"\]\(([\w./-]+\.md)\)", index) if not p.startswith("..")}


def command_lines(page: str) -> list[str]:
    """The lines of shell blocks that call `evaluate`, and the examples in tables."""
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", page, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    called = [call for line in lines for part in line.split(" && ") if (call := part.strip().removeprefix("$ "))]
    called = [call for call in called if call.startswith("evaluate ")]
    return called + re.findall(r"^\|.*`(evaluate \w+ -[^`]*)`", page, re.M)


def parse(command: str) -> None:
    """Let the command line read a command's words, and run nothing."""
    import typer.main

    from evaluator.cli.app import app

    words = list(itertools.takewhile(lambda word: word not in SHELL, shlex.split(command, comments=True)))[1:]
    group: Any = typer.main.get_command(app)
    while hasattr(group, "commands"):
        group = group.commands[words.pop(0)]
    if "..." in words or "--help" in words:
        return
    group.make_context("evaluate", words)


@pytest.mark.parametrize("file", [f for f in EVERY if f.name != "CHANGELOG.md"], ids=name)
def test_commands_have_the_options_that_pages_give_them(file: Path) -> None:
    for command in command_lines(file.read_text(encoding="utf-8")):
        try:
            parse(command)
        except Exception as error:
            pytest.fail(f"{name(file)}: {command}: {type(error).__name__}: {error}")


def test_a_command_with_no_such_option_is_seen() -> None:
    with pytest.raises(Exception, match="has no option --no-such-option"):
        parse("evaluate replay -p random --no-such-option 1")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.html", '<script async src="https://cdn.example/x.js"></script>'),
        ("a.html", "<link rel='stylesheet' href='//fonts.example/css'>"),
        ("a.html", "<img alt='' src=http://example/x.png>"),
        ("a.html", "<style>@import 'https://fonts.example/css';</style>"),
        ("a.css", "src: url(https://fonts.example/x.woff2)"),
        ("a.svg", '<image href="https://example/x.png"/>'),
    ],
)
def test_what_a_page_would_fetch_from_another_host_is_seen(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert len(build.fetched(tmp_path)) == 1


def test_a_link_that_a_reader_follows_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://example.org">there</a> <img src="b.svg">', encoding="utf-8")
    (tmp_path / "b.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"></svg>', encoding="utf-8")
    assert build.fetched(tmp_path) == []


def test_sources_of_the_site_hold_every_page_and_lead_nowhere_else(tmp_path: Path) -> None:
    build.write_sources(tmp_path)
    pages = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.md")}
    assert pages == set(build.places().values())
    for file in tmp_path.rglob("*.md"):
        for target in re.findall(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)", FENCE.sub("", file.read_text(encoding="utf-8"))):
            assert target.startswith("https:") or (file.parent / target).exists(), (file, target)


def test_pages_of_files_name_files_that_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|docs|evaluator|datasets|notebooks)/[\w./-]+)`", page)
    assert len(named) > 10
    for path in named:
        assert (ROOT / path).exists(), path
    for question in ("window is applied", "policy", "dataset", "estimator", "check", "column of a report", "option"):
        assert re.search(rf"^\*\*\.\.\. .*{question}\?\*\*", page, re.M), question


def test_pictures_of_the_gallery_are_the_notebooks() -> None:
    pictures = {name: generate.first_picture(notebook) for name, notebook in generate.notebooks()}
    stored = {file.stem: file.read_text(encoding="utf-8") for file in (DOCS / "pictures" / "gallery").glob("*.svg")}
    assert stored == {name: picture for name, picture in pictures.items() if picture}, "run: python docs/generate.py"


def test_pictures_show_the_numbers_of_their_pages() -> None:
    clocks = (DOCS / "pictures" / "clocks.svg").read_text(encoding="utf-8")
    page = (DOCS / "why" / "two-clocks.md").read_text(encoding="utf-8")
    ends = [float(x) for x in re.findall(r"^(?:live|replayed, .*?) +([\d.]+) ±", page, re.M)]
    assert re.findall(r": (\d+)</text>", clocks) == [f"{end:.0f}" for end in ends]
    assert f"looks {1 - ends[2] / ends[0]:.0%} too good" in clocks
    drawn = (DOCS / "pictures" / "speed.svg").read_text(encoding="utf-8")
    for who, fast, _ in speeds():
        assert f">{who}</text>" in drawn
        assert f">{fast * 1e6:,.0f}</text>" in drawn
