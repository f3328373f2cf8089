"""Which code a policy runs: what no version number stands for."""

from __future__ import annotations

import ast
import hashlib
import os
import secrets
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import all_suffixes
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from evaluator.errors import WorkerError
from evaluator.jobs.workers import this_worker
from evaluator.outputs.atomic import checksum
from evaluator.policies.running import is_ours

# More is no path.
_LONGEST = 1024
_PACKAGE = Path(__file__).resolve().parents[0]


@dataclass(frozen=True)
class CodeOfPolicy:
    """Hashes of a policy's code, as a worker is told them."""

    written: str  # of its files, and of installed packages: the same in every process that can run it
    run: str  # of that and of what the process has imported besides (`own_code`)


def codes_of(policies: Sequence[Any]) -> tuple[CodeOfPolicy, ...]:
    """Return the hashes of each policy's code."""
    return tuple(CodeOfPolicy(_hash(own_code(of, imported=False)), _hash(own_code(of))) for of in policies)


def refuse_other_code(policies: Sequence[Any], wanted: Sequence[CodeOfPolicy]) -> None:
    """Raise WorkerError unless a worker loaded the command's policies, unchanged since it imported them.

    What either process has imported besides does not count: it is another program. What the worker imported for an
    earlier command counts as it was then, for that is what it runs.
    """
    for policy, of in zip(policies, wanted, strict=True):
        if _hash(own_code(policy, imported=False)) != of.written:
            raise WorkerError(
                f"Worker {this_worker()} is refused: what {policy.spec} consists of is another there.",
                remedy="the files of a policy must be the same there, and so must installed packages.",
            )
        _refuse_older_modules(policy)


# The checksums of files of code, as this worker found them before it ran what they say.
_found: dict[Path, str] = {}


def _refuse_older_modules(policy: Any) -> None:
    """Raise if this process has imported a file as it was before it changed; a policy's own file is loaded anew."""
    if is_ours(policy):
        return
    imported = {_file_of(of) for name, of in dict(sys.modules).items() if not name.startswith("_policy_")}
    for file in _code_of(policy):
        now = checksum(file)
        if _found.setdefault(file, now) != now:
            if file in imported:
                raise WorkerError(
                    f"Worker {this_worker()} is refused: it has imported {file.name} as it was before it changed.",
                    remedy="start the worker anew.",
                )
            _found[file] = now


def _hash(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def own_code(policy: Any, *, imported: bool = True) -> tuple[str, ...]:
    """Return what the code of a user's policy is known by, a line for each file and installed package.

    The files are that of its class, the rest of its package, what these import, also within functions, and what has
    been imported by now; the standard library and installed packages count with what was installed. A text in the code
    that is the name of a module counts as an import. Data is found where a parameter or a text in the code is the name
    of a file, from the working folder or from beside the code; what a policy reads or imports by a name that it puts
    together is not. Without `imported`, what has been imported by now is left out.
    """
    if is_ours(policy):
        return ()
    code = _code_of(policy)
    if not code:  # it can never be recognised
        return (secrets.token_hex(),)
    more = _loaded(_class_of(policy).__module__) if imported else set()
    files = {*code, *more, *_data(code, policy.parameters.values())}
    return (*sorted(f"{path.name} {checksum(path)}" for path in files), *_installed())


def _class_of(policy: Any) -> type:
    found: type = getattr(policy, "cls", type(policy))
    return found


def _code_of(policy: Any) -> set[Path]:
    """Return the files of a policy's code; none where its class has no file."""
    cls = _class_of(policy)
    file = _file_of(sys.modules.get(cls.__module__))
    own = {file, *_defined_in(cls)} if file is not None else set()
    return {*own, *_package_of(cls.__module__), *_imported(own)} if own else set()


def _file_of(module: object) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file is not None and Path(file).is_file() else None


def _defined_in(cls: type) -> set[Path]:
    """Return the files of a class's functions: modules of one name displace each other."""
    functions = [value for base in cls.__mro__ for value in vars(base).values() if hasattr(value, "__code__")]
    files = {Path(function.__code__.co_filename).resolve() for function in functions}
    return {file for file in files if file.is_file() and not _installed_at(file)}


def _package_of(name: str) -> set[Path]:
    """Return the code of the package that a module is part of."""
    folders = getattr(sys.modules.get(name.partition(".")[0]), "__path__", [])
    suffixes = tuple(all_suffixes())
    found = {file.resolve() for folder in folders for file in Path(folder).rglob("*") if file.name.endswith(suffixes)}
    return {file for file in found if file.suffix != ".pyc"}


def _imported(files: set[Path]) -> set[Path]:
    """Return the files that some files import, wherever in them, and what those import."""
    folders = {*(file.parent for file in files), *(Path(folder).resolve() for folder in sys.path)}
    roots = [folder for folder in folders if not _installed_at(folder)]
    found: set[Path] = set()
    new = list(files)
    while new:
        at = new.pop()
        for name, level in _names(at):
            parts = name.split(".")
            for root in [at.parents[level - 1]] if level else roots:
                whole = [root.joinpath(*parts[: i + 1]) for i in range(len(parts))]
                more = {path.resolve() for place in whole for path in _at(place) if path.is_file()} - found
                found |= more
                new += [path for path in more if path.suffix == ".py"]
    return found


def _names(file: Path) -> Iterator[tuple[str, int]]:
    """Yield each name that a file imports, and how many folders up it is looked for; 0 on Python's path.

    A text that may be a module's name counts: ``import_module`` takes it.
    """
    for node in _nodes(file):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (".".join(filter(None, (node.module, alias.name))), min(node.level, len(file.parents)))
                for alias in node.names
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < _LONGEST:
            name = node.value.lstrip(".")
            if all(part.isidentifier() for part in name.split(".")):
                yield name, min(len(node.value) - len(name), len(file.parents))


def _data(code: set[Path], parameters: Iterable[object]) -> set[Path]:
    """Return the files that parameters and code name."""
    here = Path.cwd()
    names = [(here, value) for value in parameters]
    for file in code:
        texts = {node.value for node in _nodes(file) if isinstance(node, ast.Constant)}
        names += [(folder, text) for folder in (here, file.parent) for text in texts]
    places = {folder / text for folder, text in names if isinstance(text, str) and 0 < len(text) < _LONGEST}
    return {place.resolve() for place in places if _is_file(place)}


def _is_file(place: Path) -> bool:
    try:
        return place.is_file()
    except (OSError, ValueError):  # no name that a file can have
        return False


def _nodes(file: Path) -> list[ast.AST]:
    """Return what a file of Python consists of; nothing for other files, and for what does not compile."""
    try:
        return list(ast.walk(ast.parse(file.read_bytes()))) if file.suffix == ".py" else []
    except (SyntaxError, ValueError):
        return []


def _at(place: Path) -> list[Path]:
    suffixes = [suffix for suffix in all_suffixes() if suffix != ".pyc"]
    return [*(place.with_name(place.name + suffix) for suffix in suffixes), place / "__init__.py"]


def _loaded(name: str) -> set[Path]:
    """Return the files of what was imported, but for the program itself and other policies of users."""
    modules = dict(sys.modules)
    others = [of for key, of in modules.items() if key == name or not key.startswith(("__main__", "_policy_"))]
    # Most of them by their first letters: resolving the names of thousands takes its time.
    own = [of for of in others if not str(getattr(of, "__file__", None)).startswith(_roots())]
    return {file for file in map(_file_of, own) if file is not None and not _installed_at(file)}


@cache
def _roots() -> tuple[str, ...]:
    """Return the folders whose content follows from what was installed, each with a slash at its end."""
    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [str(_PACKAGE), *site.getsitepackages(), site.getusersitepackages()]
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)


def _installed_at(path: Path) -> bool:
    return os.path.join(path, "").startswith(_roots())


@cache
def _installed() -> list[str]:
    """Return name, version and a hash of the files of each installed package: one version may be built twice."""
    return sorted(
        f"{of.name} {of.version} {hashlib.sha256((of.read_text('RECORD') or '').encode()).hexdigest()}"
        for of in distributions()
    )
