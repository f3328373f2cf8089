"""Give commands the options that a dataclass of options declares, and complete their values in a shell."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.errors import UsageError
from evaluator.options.declaration import Option, Options, alternatives, choices, declaration, kinds_of, several

Command = Callable[..., None]
# Every command has these, and lists them at the end.
LAST = ("full", "as_json", "debug")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def options_of(
    options: type[Options], *, to: str, but: Sequence[str] = (), given_only: bool = False
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options of a dataclass, but those named.

    The command gets them as a dict in its argument `to`, which the command line does not show; with `given_only`, only
    options that the user gave are in it.
    """
    kinds = kinds_of(options)
    own_options = {
        field.name: (declaration(field), kinds[field.name])
        for field in dataclasses.fields(options)
        if field.name not in but
    }

    def decorate(command: Command) -> Command:
        existing = inspect.signature(command, eval_str=True).parameters

        @functools.wraps(command)
        def run_with_options(**arguments: Any) -> None:
            taken = {name: _value(name, arguments.pop(name), *declared) for name, declared in own_options.items()}
            if given_only:
                taken = {name: value for name, value in taken.items() if value != own_options[name][0].default}
            command(**{to: taken}, **arguments)

        declared = (
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=_default(declared, kind), annotation=annotated
            )
            for name, (declared, kind) in own_options.items()
            for annotated in [
                Annotated[_find_parsed_type(declared, kind), option(name, declared, metavar=_metavar(kind))]
            ]
        )
        parameters = [*(p for name, p in existing.items() if name not in (to, *LAST)), *declared]
        parameters += [existing[name] for name in LAST if name in existing]
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        run_with_options.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        run_with_options.__annotations__ = {p.name: p.annotation for p in keyword}
        return run_with_options

    return decorate


def option(name: str, declared: Option, **more: Any) -> Any:
    """Return typer's description of an option: names, text in ``--help``, and further arguments of `typer.Option`.

    Every option of every command is made by this function, so that each has a declaration; a test checks this.
    """
    pairs = [word for word in declared.flags if "/" in word]
    names = pairs or [f"--{name.replace('_', '-')}"]
    names += [f"--{second.replace('_', '-')}" for second in (declared.singular, declared.plural) if second]
    names += [word for word in declared.flags if "/" not in word]
    if declared.plural:  # typer reads several, so that more than one can be refused in words
        more["metavar"] = "<str>"
    parameter = typer.Option(
        *names,
        help=help_text(name, declared),
        rich_help_panel=declared.panel or None,
        autocompletion=COMPLETIONS.get(name),
        **more,
    )
    parameter.declared = declared
    return parameter


def argument(declared: Option, *, completes: str = "") -> Any:
    """Return typer's description of a positional argument; shells complete it as the option named `completes`."""
    parameter = typer.Argument(help=declared.help, autocompletion=COMPLETIONS.get(completes))
    parameter.declared = declared
    return parameter


def declarations(command: Any) -> dict[str, tuple[Option | None, Any]]:
    """Return the declaration of each option and argument of a command, or None without one, and the type."""
    given = inspect.signature(command.callback, eval_str=True).parameters.items()
    pairs = {
        name: typing.get_args(parameter.annotation)
        for name, parameter in given
        if parameter.annotation is not typer.Context
    }
    return {name: (getattr(offer, "declared", None), kind) for name, (kind, offer) in pairs.items()}


def only(name: str, declared: Option, values: Sequence[str]) -> str:
    """Return the value of an option that takes one here, or raise UsageError, which names the command for several."""
    if len(values) > 1 and len(set(values)) == 1:
        raise UsageError(f"--{name} is given {len(values)} times: {values[0]}.", remedy="give it once.")
    if len(values) > 1:
        raise UsageError(
            f"--{name} takes one value here, not {len(values)}: {', '.join(values)}.",
            remedy=f"give one; evaluate compare --{declared.plural} {','.join(values)} takes several.",
        )
    return values[0]


def _metavar(kind: Any) -> str | None:
    """Return the choices of an option as the help writes them; None if the option takes other values as well."""
    others = [other for other in alternatives(kind) if other is not type(None) and not choices(other)]
    return f"[{'|'.join(map(str, choices(kind)))}]" if choices(kind) and not others else None


def help_text(name: str, declared: Option) -> str:
    """Return the text of an option in ``--help``."""
    if not declared.example:
        return f"{declared.help}." if ". " in declared.help else declared.help
    example = f"--{name.replace('_', '-')} {declared.example}"
    before, stop, default = declared.help.partition(". Default:")
    return f"{before}: {example}{stop}{default}{'.' if stop else ''}"


def _find_parsed_type(declared: Option, kind: Any) -> Any:
    kinds = alternatives(kind)
    if declared.plural or (several(kind) is not None and str not in kinds):
        return list[str] | None
    plain = next((type_ for type_ in (bool, float, int) if type_ in kinds and str not in kinds), None)
    read: Any = plain or (Path if Path in kinds and str not in kinds else str)
    return read | None if type(None) in kinds else read


def _default(declared: Option, kind: Any) -> Any:
    return None if several(kind) is not None and str not in alternatives(kind) else declared.default


def _value(name: str, given: Any, declared: Option, kind: Any) -> Any:
    """Return the value of an option; a word of an option that takes several values may hold several with commas."""
    if not declared.plural and (several(kind) is None or str in alternatives(kind)):
        return given
    words = tuple(word.strip() for text in given or () for word in text.split(","))
    if declared.plural:
        return only(name, declared, words) if words else declared.default
    return words or (None if type(None) in alternatives(kind) else ())


def policy_names(incomplete: str) -> list[str]:
    """Return the policies that complete a name, or the last name of a list with commas."""
    from evaluator.policies.registry import names

    return _complete_last(incomplete, names())


def dataset_names(incomplete: str) -> list[str]:
    """Return the bundled datasets and scenarios, the specs and the converted folders that complete a name."""
    from evaluator.reading.locate import bundled_names

    return [*_filter_names(bundled_names(), incomplete), *_find_paths(incomplete, _is_log)]


def scenario_names(incomplete: str) -> list[str]:
    """Return the bundled scenarios and the specs that complete a name."""
    from evaluator.reading.locate import bundled_scenarios

    return [*_filter_names(bundled_scenarios(), incomplete), *_find_paths(incomplete, _is_spec)]


def finding_codes(incomplete: str) -> list[str]:
    """Return the codes of findings that complete a code, or the last code of a list with commas."""
    from evaluator.findings.catalogue import catalogue

    return _complete_last(incomplete, ["warn", *catalogue()])


def data_files(incomplete: str) -> list[str]:
    """Return the data files that complete a path."""
    from evaluator.reading.locate import DATA_SUFFIXES

    return _find_paths(incomplete, lambda path: bool(DATA_SUFFIXES & set(path.suffixes)) and path.is_file())


def _filter_names(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in sorted(names) if name.startswith(incomplete)]


def _find_paths(incomplete: str, fits: Callable[[Path], bool]) -> list[str]:
    """Return the fitting paths that complete a path, with the folder as the user wrote it."""
    folder, slash, name = incomplete.rpartition("/")
    try:
        paths = [path for path in Path(f"{folder}{slash}" or ".").iterdir() if path.name.startswith(name)]
        return sorted(f"{folder}{slash}{path.name}" for path in paths if not path.name.startswith(".") and fits(path))
    except OSError:
        return []  # a shell cannot show an error about the folder


def _is_spec(path: Path) -> bool:
    return path.suffix == ".toml" and path.is_file()


def _is_log(path: Path) -> bool:
    return _is_spec(path) or any((path / name).is_file() for name in ("spec.toml", "meta.json"))


def made_names(incomplete: str) -> list[str]:
    """Return the datasets of `evaluate datasets make` that complete a name."""
    from evaluator.reading.options import MADE

    return [name for name in MADE if name.startswith(incomplete)]


def column_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns that complete a name, if the spec or the first line of a text file lists the columns."""
    try:
        return _complete_last(incomplete, _read_columns(context.params))
    except (OSError, ValueError):
        return []  # a shell cannot show an error about the file; the command will report it


# Functions that complete an option or argument, by its name.
COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "policy": policy_names,
    "policies": policy_names,
    "finding": finding_codes,
    "fail_on": finding_codes,
    "baseline": policy_names,
    "dataset": dataset_names,
    "made": made_names,
    "log": dataset_names,
    "scenario": scenario_names,
    "data": data_files,
    "conversions": data_files,
    "file": data_files,
    "path": data_files,
    "by": column_names,
    "cluster_by": column_names,
    "delay_column": column_names,
    "features": column_names,
    "keep": column_names,
}


def _complete_last(incomplete: str, words: Iterable[str]) -> list[str]:
    """Return the words that complete the last word of a list with commas or plus signs, after the others."""
    at = max(incomplete.rfind(","), incomplete.rfind("+")) + 1
    return [incomplete[:at] + word for word in words if word.startswith(incomplete[at:])]


def _read_columns(given: dict[str, Any]) -> list[str]:
    if (file := given.get("file")) is not None:
        return _read_header(Path(file), {})
    named = given.get("log") or given.get("dataset")
    if named is None:
        return []
    import tomllib

    from evaluator.reading.locate import bundled_names

    spec = bundled_names().get(str(named), Path(named))
    spec = spec / "spec.toml" if spec.is_dir() else spec
    source = tomllib.loads(spec.read_text(encoding="utf-8")).get("source", {})
    if "columns" in source:
        return [str(column) for column in source["columns"]]
    path = given.get("path")
    return _read_header(Path(path) if path else spec.parent / str(source.get("files", "")), source)


def _read_header(file: Path, source: dict[str, Any]) -> list[str]:
    """Return the names in the first line of a text file, compressed or not; empty for another format."""
    packed = file.suffix == ".gz"
    suffix = Path(file.stem).suffix if packed else file.suffix
    separator = _SEPARATORS.get(f".{source['format']}" if "format" in source else suffix)
    if separator is None:
        return []
    import csv
    import gzip

    with (gzip.open if packed else open)(file, "rt", encoding="utf-8-sig") as lines:
        return next(csv.reader(lines, delimiter=separator), [])
