"""Write docs/reference from the code: ``python docs/generate.py``. A test fails where the pages differ.

``commands.md`` and ``options.md`` come from the command line itself, ``policies.md`` from the registry, ``spec.md``
from the schema of specs and datasets/README.md, ``api.md`` from the docstrings of what `evaluator` exports.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
REFERENCE = DOCS / "reference"
sys.path.insert(0, str(ROOT))  # the checkout that the script is in, whatever is installed


def cell(text: object) -> str:
    """Return text as the cell of a table, on one line."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return a Markdown table."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(cell(x) for x in line) + " |" for line in lines) + "\n"


# Commands and options


def said(text: str) -> str:
    """Return a help text with options, and the value that an example at its end gives one, as code."""
    return re.sub(r"(?<!\w)(--[a-z-]+(?: [^\s()]+(?=[.]?$|[.] ))?|-[a-z] [^\s()]+)", r"`\1`", text)


def commands() -> list[tuple[str, Any]]:
    """Return every command of the command line with its name, those of groups too, in the order of its help."""
    import typer.main

    from evaluator.cli.app import app

    found: list[tuple[str, Any]] = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found += [(f"{name} {sub}", c) for sub, c in inner.items()] if inner else [(name, command)]
    return found


def shown_default(parameter: Any) -> str:
    """Return a parameter's default as the reader would type it."""
    value = parameter.default
    if parameter.required:
        return "*required*"
    if value is None or value is False or callable(value) or value in ((), []) or "UNSET" in repr(value):
        return ""
    return f"`{value}`"


def words(parameter: Any) -> str:
    """Return an option's spellings, or an argument's name."""
    spelled = [*parameter.opts, *parameter.secondary_opts]
    if parameter.param_type_name == "argument":
        spelled = [parameter.name.upper()]
    return ", ".join(f"`{word}`" for word in spelled)


def example_block(epilog: str) -> str:
    """Return the examples at the end of a command's help as a block, and what else it says below."""
    from evaluator.cli.help import examples

    lines, rest = examples(epilog)
    return "```sh\n" + "\n".join(lines) + "\n```\n" + (f"\n{rest}\n" if rest else "")


def command_page() -> str:
    """Return the page of commands."""
    from evaluator.cli.help import by_panel, by_question

    parts = [
        "# Commands\n\n*Every command with its options: first those that `--help` lists, by the questions that they "
        "answer, then the rest, which `--help-all` lists.* [Options by name](options.md).\n\n"
        "The examples are of a made-up shop:\n\n```sh\nevaluate datasets make shop -o shop\n```\n"
    ]
    for name, command in commands():
        parts.append(f"## evaluate {name}\n")
        parts.append(inspect.cleandoc(command.help or "") + "\n")
        listed, others = by_question(command)
        for tables in (listed, by_panel(others)):
            if tables is not listed:
                parts.append("With `--help-all`:\n")
            for head, parameters in tables.items():
                rows = [(words(p), shown_default(p), said(getattr(p, "help", "") or "")) for p in parameters]
                parts.append(table((head, "default", "what it does"), rows))
        if command.epilog:
            parts.append(example_block(command.epilog))
    return "\n".join(parts)


def option_page() -> str:
    """Return the page of options, each once, with the commands that take it."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for name, command in commands():
        for p in command.params:
            if p.param_type_name == "option" and not p.hidden and p.name not in ("help", "debug"):
                found.setdefault(p.opts[0], []).append((name, p))
    rows: list[tuple[object, ...]] = []
    for word in sorted(found):
        helps: dict[tuple[str, str], list[str]] = {}
        for name, p in found[word]:
            helps.setdefault((shown_default(p), p.help or ""), []).append(name)
        for (default, what), names in helps.items():
            rows.append((f"`{word}`", ", ".join(names), default, said(what)))
    return (
        "# Options\n\n*Every option by name. In Python, and as keys of [study files](studies.md), `-` is `_`: "
        "`--traffic-share 0.1` is `traffic_share=0.1`.*\n\n"
    ) + table(("option", "commands", "default", "what it does"), rows)


# Policies


def policy_page() -> str:
    """Return the page of policies."""
    from evaluator.policies.registry import POLICIES, describe

    described = [describe(name) for name in POLICIES]
    rows: list[tuple[object, ...]] = [
        (f"[`{d.name}`](#{d.name})", "yes" if d.contextual else "no", _code(d.summary), d.paper) for d in described
    ]
    parts = [
        "# Policies\n\n*Every policy by name; give parameters as `-p otflinucb:alpha=0.5`.* "
        "[What they do about delays](../why/policies.md) · [bring your own](../how-to/bring-a-policy.md).\n",
        table(("policy", "reads contexts", "what it is", "source"), rows),
    ]
    for d in described:
        parts.append(f"## {d.name}\n\n{_code(d.summary)}\n")
        if d.needs:
            parts.append("Needs: " + ", ".join(map(str, d.needs)) + ".\n")
        if d.note:
            parts.append(_code(d.note) + "\n")
        parameters: list[tuple[object, ...]] = [
            (
                f"`{p.name}`",
                f"`{p.default}`",
                p.type,
                f"`{p.range}`" if p.range else "",
                _code(p.help),
            )
            for p in d.parameters
        ]
        if parameters:
            parts.append(table(("parameter", "default", "type", "range", "meaning"), parameters))
    return "\n".join(parts)


def _code(text: str) -> str:
    """Return a docstring's text as Markdown: one backtick or two quote code, and formulas are no emphasis."""
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<\[])", r"\\\1", p) for p in pieces)


# The spec


def spec_page() -> str:
    """Return the page of specs: every key with type and default from the schema, and datasets/README.md."""
    from evaluator.reading.spec import json_schema

    schema = json_schema()
    definitions = schema["$defs"]
    parts = [
        "# The spec of a dataset\n\n*What a `spec.toml` may say. The keys are those of `evaluate datasets schema`; "
        "unknown keys are errors.*\n"
    ]
    text = (ROOT / "datasets" / "README.md").read_text(encoding="utf-8")
    body = text.split("\n", 1)[1].replace("](../docs/", "](../")
    parts += [body.strip() + "\n", "## Every key\n"]
    for name in definitions:
        keys = definitions[name].get("properties", {})
        required = definitions[name].get("required", [])
        rows: list[tuple[object, ...]] = [
            (f"`{key}`" + ("\\*" if key in required else ""), _type(of), _default(of), _code(of.get("description", "")))
            for key, of in keys.items()
        ]
        if rows:
            parts.append(f"### Keys of {name}\n\n{_code(definitions[name].get('description', '')).strip()}\n")
            parts.append(table(("key", "type", "default", "meaning"), rows))
    return "\n".join(parts)


def _type(of: dict[str, Any]) -> str:
    if "$ref" in of:
        name = of["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#keys-of-{name.lower()})"
    for many in ("anyOf", "oneOf"):
        if many in of:
            return " or ".join(dict.fromkeys(_type(one) for one in of[many] if one.get("type") != "null"))
    if "enum" in of:
        return " or ".join(f"`{json.dumps(one)}`" for one in of["enum"])
    if "const" in of:
        return f"`{json.dumps(of['const'])}`"
    if of.get("type") == "array":
        return f"list of {_type(of['items'])}" if of.get("items") else "list"
    bounds = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    limits = [f"{word} {of[key]}" for key, word in bounds.items() if key in of]
    return " ".join([of.get("type", "any").replace("object", "table"), ", ".join(limits)]).strip()


def _default(of: dict[str, Any]) -> str:
    value = of.get("default")
    return "" if value is None or isinstance(value, dict) else f"`{json.dumps(value)}`"


# Findings


def finding_page() -> str:
    """Return the page of findings: every code with what it means."""
    from evaluator.findings.catalogue import COMMANDS, catalogue

    entries = catalogue().values()
    parts = [
        "# Findings\n\n*Every warning, assumption and check by its code, as `evaluate explain` prints it. "
        "Reports of `--json` and of Python name the code; `--fail-on` takes it.*\n"
    ]
    for command in COMMANDS:
        of = [entry for entry in entries if entry.command == command]
        parts.append(f"## In results of {command}\n")
        parts.append(table(("code", "what it is"), [(f"[`{e.code}`](#{e.code})", e.title) for e in of]))
        for e in of:
            parts.append(f"### {e.code}\n\n**{e.title}.** {e.means.strip()}\n")
            parts.append(f"*How it is found.* {e.how.strip()}\n\n*What it does.* {e.effect.strip()}\n")
            parts.append(f"*What to do.* {e.remedy.strip()}\n\n```py\n{e.example.strip()}\n```\n")
            if e.mended:
                parts.append(f"Without it:\n\n```py\n{e.mended.strip()}\n```\n")
    return "\n".join(parts)


# The API


def api_page() -> str:
    """Return the page of what `evaluator` exports."""
    import evaluator

    parts = ["# Python\n\n*What `import evaluator` gives; the command line and this module are twins.*\n"]
    exported = [name for name in evaluator.__all__ if not name.startswith("_")]
    for name in sorted(exported, key=lambda n: (inspect.isclass(getattr(evaluator, n)), n)):
        thing = getattr(evaluator, name)
        parts.append(f"## {name}\n")
        if not inspect.isclass(thing):
            parts.append(f"```text\n{name}{_signature(thing)}\n```\n")
        parts.append(_docstring(inspect.getdoc(thing) or ""))
        for member, of in sorted(_members(thing).items()) if inspect.isclass(thing) else ():
            of = of.__func__ if isinstance(of, classmethod | staticmethod) else getattr(of, "wrapped", of)
            if not member.startswith("_") and inspect.isfunction(of) and "\nParameters\n" in (inspect.getdoc(of) or ""):
                parts.append(f"### {name}.{member}\n\n```text\n{name}.{member}{_signature(of)}\n```\n")
                parts.append(_docstring(inspect.getdoc(of) or ""))
            elif not member.startswith("_") and inspect.isfunction(of) and of.__doc__:
                parts.append(f"`{member}{_signature(of)}`: {_code(inspect.getdoc(of) or '').splitlines()[0]}\n")
            elif not member.startswith("_") and isinstance(of, property) and of.__doc__:
                parts.append(f"`{member}`: {_code(inspect.getdoc(of) or '').splitlines()[0]}\n")
    return "\n".join(parts)


def _members(thing: type) -> dict[str, Any]:
    """Return the members of a class by name, inherited ones too where the package has them."""
    ours = [cls for cls in reversed(thing.__mro__) if cls.__module__.startswith("evaluator.")]
    return {name: of for cls in ours for name, of in vars(cls).items()}


def _signature(thing: Any) -> str:
    """Return a function's arguments with their defaults, lines of at most 100 letters; the types are said below."""
    signature = inspect.signature(thing)
    shown = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in signature.parameters.values()
        if p.name not in ("self", "cls")
    ]
    plain = str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    returned = signature.return_annotation
    arrow = "" if returned is inspect.Signature.empty else f" -> {re.sub(r'evaluator[.a-z_]*[.]', '', str(returned))}"
    return textwrap.fill(plain + arrow.replace("'", ""), 100, subsequent_indent="    ", break_long_words=False)


def _docstring(text: str) -> str:
    """Return a numpydoc docstring as Markdown."""
    sections = re.split(r"\n(?=[A-Z]\w[\w ]*\n-{3,}\n)", text)
    parts = [_code(sections[0]).strip() + "\n"]
    for section in sections[1:]:
        head, _, body = section.partition("\n")
        body = body.split("\n", 1)[1]
        parts.append(f"**{head}**\n")
        if ">>>" in body:
            parts.append(f"```pycon\n{body.strip()}\n```\n")
            continue
        for entry in re.split(r"\n(?=\S)", body.strip("\n")):
            name, _, meaning = entry.partition("\n")
            said = " ".join(line.strip() for line in meaning.splitlines())
            parts.append(f"- `{name.strip()}`: {_code(said)}" if said else _code(name.strip()))
        parts.append("")
    return "\n".join(parts)


# The gallery


def notebooks() -> list[tuple[str, dict[str, Any]]]:
    """Return the notebooks by name, those of no paper first."""
    files = sorted((ROOT / "notebooks").glob("*.ipynb"), key=lambda f: (bool(re.search(r"\d{4}", f.stem)), f.stem))
    return [(file.stem, json.loads(file.read_text(encoding="utf-8"))) for file in files]


def first_picture(notebook: dict[str, Any]) -> str | None:
    """Return the first picture among a notebook's outputs, as SVG: one of its own, or one within a result's HTML."""
    outputs = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", [])]
    for data in outputs:
        shown = "".join(data.get("image/svg+xml", data.get("text/html", "")))
        found = re.search(r"<svg\b.*?</svg>", shown, re.DOTALL)
        if found:
            named = "xmlns=" in found[0].split(">", 1)[0]
            return found[0] if named else found[0].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return None


def gallery_page() -> str:
    """Return the gallery: each notebook with its first words and its first picture."""
    parts = ["# Gallery\n\n*The notebooks, each with what it says first; every cell is run by a test.*\n"]
    for name, notebook in notebooks():
        title, _, rest = "".join(notebook["cells"][0]["source"]).partition("\n")
        words = rest.strip().split("\n\n")[0]
        parts.append(f"## {title.lstrip('# ')}\n")
        if first_picture(notebook):
            parts.append(f"[![{title.lstrip('# ')}](pictures/gallery/{name}.svg)](../notebooks/{name}.ipynb)\n")
        parts.append(f"{words}\n\n[The notebook](../notebooks/{name}.ipynb)\n")
    return "\n".join(parts)


PAGES = {
    "../gallery.md": gallery_page,
    "commands.md": command_page,
    "options.md": option_page,
    "policies.md": policy_page,
    "findings.md": finding_page,
    "spec.md": spec_page,
    "api.md": api_page,
}
MARK = "<!-- Written by docs/generate.py: change what it is made from, then run it. -->\n"


def page(name: str) -> str:
    """Return the text of a page of the reference, as the code has it now."""
    return MARK + "\n" + re.sub(r"\n{3,}", "\n\n", PAGES[name]()).strip() + "\n"


def main() -> None:
    """Write the pages, and the pictures of the gallery."""
    for name, notebook in notebooks():
        picture = first_picture(notebook)
        if picture:
            (DOCS / "pictures" / "gallery").mkdir(exist_ok=True)
            (DOCS / "pictures" / "gallery" / f"{name}.svg").write_text(picture, encoding="utf-8")
    for name in PAGES:
        (REFERENCE / name).write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
