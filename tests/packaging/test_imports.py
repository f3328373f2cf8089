"""Dependencies point one way: cli -> report -> audits -> comparisons -> checks -> replays -> policies -> kernels."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import evaluator
from evaluator.datasets import convert

PACKAGE = Path(evaluator.__file__).parent

# Rooms that serve all others, as the files outside of all rooms do: errors, units, streams and so on.
SERVE_ALL = {"findings", "jobs", "options", "outputs", "results"}
# What each room may import of the package besides them. What a room holds within itself it may import; a room that is
# named here by its path is one of its own.
ALLOWED: dict[str, set[str] | None] = {
    "jobs": set(),
    "findings": set(),
    "options": set(),
    "outputs": set(),
    "results": set(),
    "engine/kernels": set(),
    "log": set(),
    "estimates": set(),
    "delays": {"engine/kernels"},
    "delays/study": {"delays", "estimates", "engine/kernels", "log", "replays/rounds"},
    "reading": {"delays", "log", "worlds/criteo", "worlds/scenarios", "worlds/shop"},
    "datasets": {"log", "reading", "worlds/scenarios"},
    "policies": {"delays", "engine/kernels"},
    "worlds/criteo": set(),
    "worlds/scenarios": {"delays", "log"},
    "worlds/shop": set(),
    "worlds": {
        "datasets", "delays", "engine/kernels", "log", "policies", "reading", "replays", "engine", "replays/rounds",
        "worlds/criteo", "worlds/scenarios", "worlds/shop",
    },
    "simulations": {"policies", "worlds", "worlds/scenarios"},
    "replays/rounds": {"delays", "engine/kernels", "log"},
    "engine": {"engine/kernels", "policies", "replays/rounds"},
    "replays/learned": {"delays", "engine/kernels", "log", "policies", "engine", "replays/rounds"},
    "replays": {
        "delays", "estimates", "engine/kernels", "log", "policies", "replays/learned", "engine", "replays/rounds",
    },
    "comparisons": {"checks", "reading", "estimates", "log", "policies", "replays", "engine"},
    "checks": {"delays", "delays/study", "estimates", "engine/kernels", "log", "replays", "replays/rounds"},
    "audits": {
        "checks", "comparisons", "delays", "estimates", "log", "policies", "replays", "engine", "worlds",
    },
    "reports": {
        "audits", "checks", "comparisons", "delays", "delays/study", "estimates", "log", "reading", "replays",
        "simulations", "worlds/scenarios",
    },
    "cli": None,
}  # fmt: skip
# Third parties that only these folders touch.
FENCES = {
    "polars": {"reading", "worlds/criteo", "worlds/scenarios", "worlds/shop"},
    "obstore": {"reading"},
    "pyarrow": {
        "results",
        "outputs",
        "reading",
        "log",
        "replays",
        "comparisons",
        "delays/study",
        "simulations",
        "audits",
        "reports",
        "worlds",
    },
    "distributed": {"jobs"},
    "typer": {"cli"},
    "rich": {"cli", "reports"},
    "altair": {"reports"},
    "vl_convert": {"reports"},
    "jinja2": {"reports"},
    "numba": {"engine/kernels"},
    "pydantic": {"delays", "reading", "reports", "results", "worlds/criteo", "worlds/scenarios"},
}  # fmt: skip


@cache
def imports(file: Path, *, for_checkers: bool = False) -> set[str]:
    """Modules a file imports when it runs, and those that it imports for type checkers alone if these count."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not for_checkers and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # What is imported by its name counts, not the folder that it is in.
            folder = PACKAGE.parent / node.module.replace(".", "/")
            places = {f"{node.module}.{alias.name}": folder / alias.name for alias in node.names}
            named = {name for name, place in places.items() if place.is_dir() or place.with_suffix(".py").is_file()}
            found |= named or {node.module}
    return found


def room(module: str) -> str | None:
    """Return the room of a module of the package: the longest name among `ALLOWED`; None for those at the top."""
    parts = module.split(".")[1:]
    rooms = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in rooms if name in ALLOWED), None)


def files_of(name: str) -> list[Path]:
    """Return the files of a room, without those of rooms within it."""
    return [f for f in (PACKAGE / name).rglob("*.py") if room(module_of(f)) == name]


def module_of(file: Path) -> str:
    """Return the dotted name of a file of the package."""
    return ".".join(("evaluator", *file.relative_to(PACKAGE).with_suffix("").parts))


@pytest.mark.parametrize("name", ALLOWED)
def test_rooms_import_only_what_comes_before_them(name: str) -> None:
    files = files_of(name)
    assert files
    allowed = ALLOWED[name]
    for file in files:
        for module in imports(file):
            parts = module.split(".")
            if parts[0] == "evaluator" and room(module) is not None:
                assert allowed is None or room(module) in allowed | {name} | SERVE_ALL, f"{file} imports {module}"
            if parts[0] in FENCES:
                assert {name, name.split("/")[0]} & FENCES[parts[0]], f"{file} imports {module}"


def test_every_folder_is_fenced() -> None:
    folders = {f.name for f in PACKAGE.iterdir() if f.is_dir() and list(f.glob("*.py"))}
    assert folders == {name.split("/")[0] for name in ALLOWED}


def imported_files() -> dict[str, set[str]]:
    """Return which modules of the package each of them names: a reader follows imports for type checkers, too."""
    modules = {module_of(file).removesuffix(".__init__"): file for file in PACKAGE.rglob("*.py")}
    return {
        name: {m for m in imports(file, for_checkers=True) if m in modules} - {name} for name, file in modules.items()
    }


def circles(imported: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that import each other in a loop: the strongly connected components (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        path.append(module)
        for other in imported[module]:
            if other not in number:
                visit(other)
            if other in path:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            loop = {path.pop()}
            while module not in loop:
                loop.add(path.pop())
            if len(loop) > 1:
                found.append(loop)

    for module in imported:
        if module not in number:
            visit(module)
    return found


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}) == [{"a", "b", "c"}]


def test_no_files_import_each_other_in_a_circle() -> None:
    imported = imported_files()
    assert "evaluator.log.schema" in imported["evaluator.log.contract"]
    assert "evaluator.delays.cdf" in imported["evaluator.engine.kernels.exposure"]  # for type checkers alone
    assert circles(imported) == []


# Names that files of several rooms may have, because each plays the same part in its room.
SAME_PART = {
    "__init__.py": "says what the room holds",
    "options.py": "the options of the room's command",
    "run.py": "the room's work from beginning to end",
    "result.py": "what the room finds",
    "words.py": "what the room says of its result",
    "result_tables.py": "the tables of what the room finds",
    "registry.py": "what the room has several of, a line each",
}


def test_no_name_stands_in_two_rooms_for_two_things() -> None:
    """But for `SAME_PART`, a command and its report (cli, report), and a file and what is found of it (findings)."""
    names: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        folder = file.parent.relative_to(PACKAGE).as_posix()
        if file.name not in SAME_PART and folder != "replays/findings":
            names.setdefault(file.name, set()).add(folder)
    twice = {name: folders for name, folders in names.items() if len(folders) > 1 and folders != {"cli", "reports"}}
    assert twice == {}


def test_results_find_their_report_when_a_notebook_asks() -> None:
    """No room but the command line knows the report: the package itself does, and loads it no sooner."""
    reach = {f for f in PACKAGE.rglob("*.py") if any(room(module) == "reports" for module in imports(f))}
    assert {module_of(f) for f in reach if room(module_of(f)) not in ("reports", "cli")} == {"evaluator.__init__"}
    public = "from evaluator import Audit, CheckReport, Comparison, DelayStudy, Log, ReplayResult, Simulation"
    modules = loaded_by(public)
    assert "evaluator.results.in_notebooks" in modules
    assert not {m for m in modules if m.startswith(("evaluator.reports", "rich", "altair"))}


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split("\n")[-2].split())


def test_help_imports_nothing_heavy() -> None:
    code = "sys.argv = ['evaluate', '--help']\ntry:\n import evaluator.cli.app as a; a.main()\nexcept SystemExit: pass"
    modules = loaded_by(f"exec({code!r})")
    assert not modules & {"polars", "pyarrow", "numpy", "numba", "scipy", "altair", "pydantic"}
    # Each command loads when it is asked for, and its options with it.
    assert len({m for m in modules if m.startswith("evaluator.")}) <= 20
    assert not {m for m in modules if m.endswith(".options")} - {"evaluator.options", "evaluator.cli.options"}


def test_a_command_loads_no_other() -> None:
    code = "sys.argv = ['evaluate', 'explain']\ntry:\n import evaluator.cli.app as a; a.main()\nexcept SystemExit: pass"
    modules = loaded_by(f"exec({code!r}); print()")
    assert {m for m in modules if m.startswith("evaluator.cli.")} == {
        f"evaluator.cli.{name}" for name in ("app", "command_parameters", "explain", "help", "options")
    }


def test_pages_of_results_import_no_reader() -> None:
    """A page of results that are there reads no log: polars and the readers would cost it 30 MB."""
    modules = loaded_by("import evaluator.reports.result_files")
    assert "evaluator.comparisons.result" in modules
    assert not modules & {"polars", "evaluator.comparisons.variant_runs", "evaluator.reading.intake"}


def test_a_replay_loads_what_it_uses() -> None:
    code = "from evaluator import load, replay; replay(load('synthetic', limit=2000), 'delayed-klucb', window=50)"
    loaded_by(code)  # compiles what the cache does not hold
    modules = loaded_by(code)
    assert "evaluator.engine.loop" in modules
    assert not modules & {"scipy.stats", "scipy.linalg", "altair", "vl_convert", "sklearn"}
    # Compiled code runs without what compiled it.
    assert not modules & {"numba.np.linalg", "numba.cpython.unicode", "numba.typed.typeddict", "cffi"}
    rooms = {m.split(".")[1] for m in modules if m.count(".") > 1 and m.startswith("evaluator.")}
    assert not rooms & {"jobs", "reports", "cli"}
    # Of these a replay knows the options alone, which are of other functions of the same module.
    for other in ("audits", "checks", "comparisons", "simulations"):
        own = {m for m in modules if m.startswith(f"evaluator.{other}.")}
        assert own <= {f"evaluator.{other}.options"}


def test_a_replay_on_a_converted_log_loads_no_reader_of_tables(tmp_path: Path) -> None:
    convert("synthetic", tmp_path / "log", limit=2000)
    modules = loaded_by(f"from evaluator import load, replay; replay(load({str(tmp_path / 'log')!r}), 'ucb1')")
    assert "evaluator.reading.canonical" in modules
    assert not modules & {"polars", "obstore", "evaluator.reading.spec", "evaluator.reading.adapter"}
    assert not {m for m in modules if m.startswith("evaluator.worlds")}


@pytest.mark.parametrize("words", ["'explain', 'few-rounds'", "'policies', 'list'"])
def test_what_looks_something_up_imports_no_statistics(words: str) -> None:
    code = f"import evaluator.cli.app as a; sys.argv = ['evaluate', {words}]"
    run = f"{code}\ntry:\n a.main()\nexcept SystemExit: pass\nprint()"
    modules = loaded_by(f"exec({run!r})")
    assert not modules & {"scipy.special", "scipy.stats", "polars", "altair"}
    if "list" in words:  # a table alone, of no result
        assert not modules & {"pyarrow", "evaluator.reports.document", "numba", "llvmlite", "yaml"}


def test_a_study_of_delays_draws_only_when_asked_to() -> None:
    words = "'delays', '--limit', '2000', '--families', 'exponential', '--bootstraps', '19'"
    code = f"from evaluator.cli import app as a; import sys; sys.argv = ['evaluate', {words}]"
    run = f"{code}\ntry:\n a.main()\nexcept SystemExit: pass\nprint()"
    assert not loaded_by(f"exec({run!r})") & {"altair", "vl_convert"}


def test_a_check_without_users_loads_no_loop_and_no_comparison() -> None:
    code = "from evaluator.cli import app as a; sys.argv = ['evaluate', 'check', '-d', 'synthetic', '--limit', '2000']"
    run = f"{code}\ntry:\n a.main()\nexcept SystemExit: pass\nprint()"
    modules = loaded_by(f"exec({run!r})")
    assert "evaluator.reports.check" in modules
    assert not modules & {"evaluator.engine.loop", "evaluator.replays.planning", "evaluator.comparisons.verdict"}
