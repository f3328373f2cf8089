"""Build the site of the docs: ``python docs/build.py site`` (needs the extra `docs`).

The landing page shows the page of a decision, and leads to it: that of `DECISION`, which is made with the site. Its
picture, ``docs/pictures/decision.png``, is drawn by Chromium with ``python docs/build.py --picture`` (extra `test`).

Sources are the pages of this folder, and beside them those that they link to: the notebooks, rendered, the tables of
what was measured, the cards of the datasets, changelog and contributing. Links into the code become plain text. Sphinx
takes warnings as errors, broken links among them; then the built pages are searched for anything from another host.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LINK = re.compile(r"(!?)\[((?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
PARTS = {
    "Start": "start/",
    "How to": "how-to/",
    "Reference": "reference/",
    "Why": "why/",
    "Notebooks": "more/notebooks/",
    "Datasets": "more/datasets/",
}
# The example of how-to/decide-on-a-rollout.md, whose page is shown.
DECISION = (
    ("datasets", "make", "shop", "-o", "shop"),
    ("datasets", "convert", "shop/spec.toml", "shop-log", "--keep", "device"),
    ("compare", "shop-log", "-p", "linucb,delayed-klucb", "-w", "7d", "--ship-if", "uplift > 2%", "--by", "device",
     "-o", "compared"),
)  # fmt: skip
SHOWN = "![The page of a decision](pictures/decision.png)"
# What a page fetches by itself: scripts, styles, fonts, pictures, frames. A link that a reader follows is none.
FETCHED = re.compile(
    r"""<(?:script|img|image|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|srcset|data|href)\s*=\s*["']?\s*(?:https?:)?//"""
    r"""|<link\b(?![^>]*\brel=["']?canonical)[^>]*?\bhref\s*=\s*["']?\s*(?:https?:)?//"""
    r"""|@import\s+(?:url\()?["']?\s*(?:https?:)?//|url\(\s*["']?\s*(?:https?:)?//""",
    re.IGNORECASE,
)


def places() -> dict[Path, str]:
    """Return every source of the site and its page: those of docs as they are, others under `more`."""
    found = {file: str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md")}
    found |= {ROOT / name: f"more/{name.lower()}" for name in ("CHANGELOG.md", "CONTRIBUTING.md")}
    found[ROOT / "tests" / "bench" / "README.md"] = "more/measured.md"
    found[ROOT / "datasets" / "README.md"] = "reference/spec.md"
    found |= {file: f"more/datasets/{file.parent.name}.md" for file in (ROOT / "datasets").glob("*/README.md")}
    found |= {file: f"more/notebooks/{file.stem}.md" for file in (ROOT / "notebooks").glob("*.ipynb")}
    return found


def linked(text: str, file: Path, page: str, known: dict[Path, str]) -> str:
    """Return a page's text whose links lead to pages of the site; those to other files become text."""

    def there(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        words = LINK.sub(there, words)
        path, mark, anchor = target.partition("#")
        beside = picture and "/" not in target  # a picture that was written with the page
        if target.startswith(("https://", "#")) or beside:
            return f"{picture}[{words}]({target})"
        source = (file.parent / path).resolve()
        if source in known:
            up = "../" * page.count("/")
            return f"{picture}[{words}]({up}{known[source]}{mark}{anchor})"
        if source.is_relative_to(DOCS) and source.is_file():
            return f"{picture}[{words}]({target})"
        if not source.exists():
            sys.exit(f"{file.relative_to(ROOT)}: nothing at {target}")
        return words

    pieces = FENCE.split(text)
    return "".join(piece if piece.startswith("```") else LINK.sub(there, piece) for piece in pieces)


def rendered(notebook: dict[str, Any], name: str, folder: Path) -> str:
    """Return a notebook as a page, its pictures as files beside it."""
    parts: list[str] = []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for place, output in enumerate(cell.get("outputs", [])):
            data = {kind: "".join(of) for kind, of in output.get("data", {}).items() if isinstance(of, list | str)}
            if "image/svg+xml" in data:
                picture = f"{name}-{number}-{place}.svg"
                (folder / picture).write_text(data["image/svg+xml"], encoding="utf-8")
                parts.append(f"![Picture {number}]({picture})")
            elif "text/html" in data:
                parts.append("```{raw} html\n" + data["text/html"] + "\n```")
            else:
                said = data.get("text/plain", "".join(output.get("text", [])))
                parts.append(f"````text\n{said}\n````")
    return "\n\n".join(parts) + "\n"


def write_decision(page: Path) -> None:
    """Write the page of `DECISION`."""
    with tempfile.TemporaryDirectory() as folder:
        for words in DECISION:
            subprocess.run([sys.executable, "-m", "evaluator", *words], cwd=folder, check=True, capture_output=True)
        shutil.copy(Path(folder) / "compared" / "report.html", page)


def draw_decision(picture: Path) -> None:
    """Draw the first screen of the page of `DECISION`."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder) / "decision.html"
        write_decision(page)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        seen = browser.new_page(viewport={"width": 1280, "height": 800})
        seen.goto(page.as_uri())
        seen.screenshot(path=picture)
        browser.close()


def write_sources(folder: Path) -> None:
    """Write the site's sources into an empty folder."""
    known = places()
    shutil.copytree(DOCS / "pictures", folder / "pictures")
    shutil.copytree(DOCS / "static", folder / "static")
    shutil.copy(DOCS / "conf.py", folder)
    for file, page in known.items():
        if file == (ROOT / "datasets" / "README.md"):
            continue
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".ipynb":
            text = rendered(json.loads(text), file.stem, target.parent)
        target.write_text(linked(text, file, page, known), encoding="utf-8")
    index = folder / "index.md"
    text = index.read_text(encoding="utf-8")
    # In the order in which the index names them; what it does not name comes last.
    order = sorted(set(known.values()), key=lambda page: (text.find(f"({page})") % len(text), page))
    parts = {part: [page for page in order if page.startswith(start)] for part, start in PARTS.items()}
    parts["Notebooks"].insert(0, "gallery.md")
    parts["More"] = [page for page in order if page.startswith("more/") and not page.startswith(tuple(PARTS.values()))]
    for part, pages in parts.items():
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {part}\n\n" + "\n".join(pages) + "\n```\n"
    leads = '<a href="decision.html"><img src="decision.png" alt="The page of a decision"></a>'
    index.write_text(text.replace(SHOWN, leads), encoding="utf-8")


def fetched(site: Path) -> list[str]:
    """Return what pages of a site would fetch from another host, with their files."""
    found = []
    for file in sorted(site.rglob("*")):
        if file.suffix in (".html", ".css", ".svg"):
            text = file.read_text(encoding="utf-8", errors="replace")
            found += [f"{file.relative_to(site)}: {hit[0][:120]}" for hit in FETCHED.finditer(text)]
    return found


def build(site: Path) -> None:
    """Build the site into a folder, or end with what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        sources = Path(name) / "sources"
        sources.mkdir()
        write_sources(sources)
        extra = sources / "extra"  # copied beside the landing page as it is
        extra.mkdir()
        write_decision(extra / "decision.html")
        shutil.copy(DOCS / "pictures" / "decision.png", extra)
        words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(sources), str(site)]
        if subprocess.run(words).returncode:
            sys.exit("The site was not built: see above.")
    others = fetched(site)
    if others:
        sys.exit("Pages ask another host:\n" + "\n".join(others))


if __name__ == "__main__":
    if sys.argv[1] == "--picture":
        draw_decision(DOCS / "pictures" / "decision.png")
    else:
        build(Path(sys.argv[1]))
