"""Questions that may have different answers have different keys; the same one has the same key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import replay
from evaluator.arguments import as_description
from evaluator.comparisons.kept import NO_MATTER, question_key
from evaluator.comparisons.study_file import READING
from evaluator.datasets import load
from evaluator.delays.cdf import DelayCDF
from evaluator.jobs import workers as computes
from evaluator.jobs.workers import LIBRARIES, software
from evaluator.log.fingerprint import content_hash
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from tests.logs import linear_log, with_outcome

BARE = with_outcome(linear_log(1500, n_actions=3, dimension=5, mean_delay=10.0, seed=1), "click", [0], [0])
SHOPS, VISITS = pa.array(["here", "there"] * 750), pa.array(range(1500))
LOG = BARE.changed(displays=BARE.displays.append_column("shop", SHOPS).append_column("visit", VISITS))
# Another value than the default of each option, and what must be said beside it.
OPTIONS: dict[str, dict[str, Any]] = {
    "window": {"window": 7}, "horizon": {"horizon": 30}, "clock": {"clock": "wall"},
    "traffic_share": {"traffic_share": 0.5}, "sampler": {"sampler": "queue"}, "propensity": {"propensity": "estimate"},
    "accept_quantile": {"accept_quantile": 0.05}, "delays": {"delays": "geometric:30"},
    "delays_from": {"delays_from": "first:20%"}, "final": {"final": "last:20%"},
    "final_policy": {"final": "last:20%", "final_policy": "exploring"}, "doubly_robust": {"doubly_robust": True},
    "reward": {"reward": "observed"}, "immature": {"immature": "correct"}, "seed": {"seed": 1},
    "repeats": {"repeats": 2}, "jobs": {"jobs": 2}, "level": {"level": 0.9}, "bootstrap": {"bootstrap": 20},
    "cluster_by": {"cluster_by": "every:100"}, "reward_max": {"reward_max": 3.0}, "cap": {"cap": 0.5},
    "reward_min": {"reward_min": -1.0},
    "objective": {"objective": "revenue"}, "learn_from": {"learn_from": "revenue"},
    "learn_every": {"learn_every": 50}, "learn_lag": {"learn_lag": 5},
    "explore_first": {"explore_first": 5}, "keep_for": {"keep_for": "visit"},
    "deployment": {"deployment": "growthbook", "learn_every": 60, "explore_first": 6},
    "guardrails": {"guardrails": ["click < 0.5"]}, "by": {"by": "shop"},
}  # fmt: skip
SPEC = """
name = "shop"
title = "Shop"
licence = "none"
[source]
files = "log.csv"
[time]
unit = "s"
[display]
time = "time"
action = "ad"
[conversion]
delay = "delay"
value = "price"
key = ["order"]
attributed = "ours"
[log]
observed_until = "complete"
[context]
columns = ["device"]
dimensions = 4
"""


def key(plan: ReplayPlan, log: str = "log", code: tuple[str, ...] = ()) -> str:
    return question_key(plan, log, code)


def plan_for(policy: str = "ucb1", **options: Any) -> ReplayPlan:
    return plan_replay(LOG, as_description(policy), ReplayOptions(**options))


def test_every_option_makes_it_another_question_but_those_that_do_not_matter(tmp_path: Path) -> None:
    replay(LOG, "ucb1").learned.save(tmp_path / "learned.npz")
    options = {**OPTIONS, "warm_start": {"warm_start": tmp_path / "learned.npz"}}
    assert options.keys() == {field.name for field in fields(ReplayOptions)}, "say here what a new option may be"
    keys = {name: key(plan_for(**given)) for name, given in options.items()}
    default = key(plan_for())
    assert key(plan_for()) == default
    assert {name for name, found in keys.items() if found == default} == set(NO_MATTER)
    assert len(set(keys.values())) == len(keys)


def test_policy_and_parameters_log_and_code_make_it_another() -> None:
    keys = [key(plan_for(policy)) for policy in ("linucb", "linucb:alpha=2", "linucb:alpha=2.0000000000000004", "ucb1")]
    keys += [key(plan_for(), log="another"), key(plan_for(), code=("mine.py 1",)), key(plan_for(), code=("mine.py 2",))]
    assert len(set(keys)) == len(keys)


def test_delays_count_with_their_content_whatever_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_for("delayed-klucb")
    one, two = (DelayCDF(np.array([0, 3]), np.array([p, 1.0]), "fit.json") for p in (0.25, 0.25000000000000006))
    told = [replace(plan, setting=replace(plan.setting, delay_cdf=cdf)) for cdf in (one, two)]
    assert key(told[0]) != key(told[1])


def test_versions_and_edits_of_the_package_make_it_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before = software()
    assert software() == before
    for name, other in (("_version", lambda library: None), ("__version__", "0"), ("package_code", lambda: "edited")):
        with monkeypatch.context() as patch:
            patch.setattr(computes, name, other)
            assert software() != before


def test_every_library_that_computes_is_in_the_key() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["propensity"]]
    names = {re.split(r"[><=;\[ ]", line)[0] for line in needed}
    shows = {"pydantic", "typer", "rich", "jinja2", "altair", "vl-convert-python"}
    copies = {"obstore", "zlib-ng"}  # objects, and what files unzip to: their content is in the key
    sets = {"threadpoolctl"}  # the number of BLAS's threads, always to one
    assert names - shows - copies - sets == set(LIBRARIES) - {"llvmlite"}  # which compiles for numba


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    rows = ["time,ad,delay,price,order,ours,device,other"]
    for i in range(40):
        converted = i % 4 == 0
        tail = f"{i},{1 + i % 3},{i // 8},{i % 2}" if converted else ",,,"
        rows.append(f"{i},{'ab'[i % 2] if i % 5 else 'c'},{tail},{'pc'[i % 3 == 0]},{2 * i}")
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "more.csv").write_text("\n".join([*rows, "40,a,,,,,p,80"]) + "\n")
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def test_every_option_of_reading_shows_in_what_is_read(shop: Path) -> None:
    given: dict[str, Any] = {
        "path": shop / "more.csv", "actions": "a,b", "features": "none", "deduplicate": "last_click",
        "attributed_only": True, "limit": 39, "sampling_rate": 0.5, "sort": True, "attribution_window": 20,
        "on_error": "quarantine", "quarantine_at_most": "5%",
    }  # fmt: skip
    assert given.keys() == READING.keys(), "say here what a new option may be"
    whole = content_hash(load(shop / "spec.toml"))
    needed = {"quarantine_at_most": {"on_error": "quarantine"}}
    found = {
        name: content_hash(load(shop / "spec.toml", **{name: value}, **needed.get(name, {})))
        for name, value in given.items()
    }
    # Of sound rows in order of time, neither leaves out or moves any.
    assert {name for name, log in found.items() if log == whole} == {"sort", "on_error", "quarantine_at_most"}
    assert len(set(found.values())) == len(found) - 2


@pytest.mark.parametrize(
    ("old", "new"),
    [('value = "price"', 'value = "other"'), ('"complete"', "1000"), ("dimensions = 4", "dimensions = 5"),
     ('unit = "s"', 'unit = "min"'), ('key = ["order"]', 'key = ["order"]\ndeduplicate = "share"')],
)  # fmt: skip
def test_a_changed_spec_makes_it_another_and_a_comment_does_not(shop: Path, old: str, new: str) -> None:
    before = content_hash(load(shop / "spec.toml"))
    (shop / "spec.toml").write_text("# By hand.\n" + SPEC)
    assert content_hash(load(shop / "spec.toml")) == before
    (shop / "spec.toml").write_text(SPEC.replace(old, new))
    assert content_hash(load(shop / "spec.toml")) != before
