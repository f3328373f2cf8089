"""A user's policy is known by all the code it runs: a change in any of it makes it another policy."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from evaluator.jobs.workers import package_code
from evaluator.own_code import own_code
from evaluator.policies.registry import resolve
from evaluator.policies.user import UserPolicy

MINE = """
from helper import STEP
import folder.part as part

class Mine:
    contextual = False
    def __init__(self, setting): self.k = setting.n_actions
    def choose(self, vectors, rng):
        from importlib import import_module
        from late import CHOICE
        return CHOICE + import_module("named.module").CHOICE
    def displayed(self, vectors, action): pass
    def converted(self, vector, action, delay, value): pass
"""
FILES = {
    "mine.py": MINE, "helper.py": "from deeper import STEP", "deeper.py": "STEP = 1", "late.py": "CHOICE = 0",
    "folder/__init__.py": "", "folder/part.py": "from . import sibling", "folder/sibling.py": "A = 1",
    "named/__init__.py": "", "named/module.py": "CHOICE = 0",
}  # fmt: skip


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("helper", "deeper", "late", "folder", "folder.part", "folder.sibling", "named"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_whatever_it_imports_belongs_to_it(beside: Path) -> None:
    policy = resolve(f"{beside}/mine.py:Mine")
    seen = [own_code(policy)]
    assert own_code(policy) == seen[0]
    for name in FILES:
        with (beside / name).open("a") as file:
            file.write("\n# changed\n")
        assert own_code(policy) not in seen, name
        seen.append(own_code(policy))


@pytest.mark.parametrize("spec", ["mine.py:Mine", "mine.py:Mine:weights=given.npz"])
def test_data_that_it_names_belongs_to_it(beside: Path, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    text = MINE.replace("def __init__(self, setting)", "def __init__(self, setting, weights='beside.npz')")
    (beside / "mine.py").write_text(text)
    monkeypatch.chdir(beside)
    for name in ("given.npz", "beside.npz", "another.npz"):
        (beside / name).write_text("1")
    policy = resolve(spec)
    before = own_code(policy)
    (beside / "another.npz").write_text("2")
    assert own_code(policy) == before
    (beside / ("given.npz" if "given" in spec else "beside.npz")).write_text("2")
    assert own_code(policy) != before


def test_what_lies_beside_it_unused_does_not(beside: Path) -> None:
    policy = resolve(f"{beside}/mine.py:Mine")
    before = own_code(policy)
    (beside / "analysis.py").write_text("A = 1")
    (beside / "notes.txt").write_text("A = 1")
    assert own_code(policy) == before


def test_the_rest_of_its_package_belongs_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "brought"
    (package / "data").mkdir(parents=True)
    for name in ("__init__.py", "data/__init__.py", "data/table.py"):
        (package / name).write_text("")
    (package / "policy.py").write_text(MINE.partition("\n\n")[2])
    monkeypatch.syspath_prepend(tmp_path)
    policy = UserPolicy(cls=importlib.import_module("brought.policy").Mine)
    before = own_code(policy)
    (package / "data" / "table.py").write_text("A = 1")
    assert own_code(policy) != before
    for name in ("brought", "brought.policy"):
        monkeypatch.delitem(sys.modules, name)


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(MINE.replace("class Mine", f"class {name}").partition("\n\n")[2])
    one, two = (resolve(f"{tmp_path}/{name}/mine.py:{name}") for name in ("one", "two"))
    before = own_code(one)
    (tmp_path / "one" / "mine.py").write_text("A = 1")
    assert own_code(one) != before
    assert own_code(two) == own_code(two)


def test_code_in_no_file_is_never_recognised() -> None:
    space: dict[str, object] = {"__name__": "nowhere"}
    exec(MINE.partition("\n\n")[2], space)
    policy = UserPolicy(cls=space["Mine"])  # type: ignore[arg-type]
    assert own_code(policy) != own_code(policy)


def test_ours_is_known_by_the_package() -> None:
    assert own_code(resolve("ucb1")) == ()
    assert package_code() == package_code()
