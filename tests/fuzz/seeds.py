"""Small sound inputs of every kind, made by our own writers."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evaluator import datasets, replay
from evaluator.arguments import as_description
from evaluator.comparisons.kept import KeptResults
from evaluator.comparisons.run import plan_comparison
from evaluator.delays.fit_file import save_fit
from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.fitting import fit_family
from evaluator.log import Log
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.run import execute_all
from tests.logs import linear_log
from tests.reading import decisions
from tests.reading.sources import write_spec

if TYPE_CHECKING:
    from evaluator.comparisons.kept import FoundResults

DAY = 86_400
ROWS = 60

STUDY = """\
dataset = "synthetic"
limit = 2000
policies = ["random", "delayed-klucb"]
windows = [50, 200, "none"]
baseline = "random"
repeats = 2
seed = 3
traffic_share = 0.5

[[policy]]
name = "otflinucb"
alpha = [0.1, 0.3]
bonus = "exact"
"""
BERNOULLI = """\
name = "arms"
title = "Three arms"
licence = "none"

[scenario]
kind = "bernoulli"
means = [0.1, 0.05, 0.03]
logger = [0.5, 0.25, 0.25]
displays = 500
seed = 4
horizon = 100
window = 50

[scenario.delay]
family = "geometric"
mean = 20
support = 0
"""
LINEAR = """\
name = "lines"
title = "Linear rewards in time"
licence = "none"

[scenario]
kind = "linear"
actions = 4
dimensions = 3
displays = 300

[scenario.delay]
family = "empirical"
file = "law.csv"

[scenario.arrivals]
displays_per_day = 400
amplitude = 0.5
growth = 1.1
delay_unit = "h"
"""


def log_rows(n: int = ROWS) -> list[dict[str, Any]]:
    """Return a log as rows: seconds, labels, propensities, money, a context, conversions of some."""
    rng = np.random.default_rng(3)
    time = np.sort(rng.integers(0, 20 * DAY, n))
    rows = []
    for i in range(n):
        sold = rng.random() < 0.4
        rows.append(
            {
                "id": f"d{i}",
                "t": int(time[i]),
                "ad": ("red", "blue", "grün")[rng.integers(3)],
                "p": round(float(rng.choice([0.25, 0.5])), 2),
                "sold": int(time[i] + rng.integers(0, 3 * DAY)) if sold else None,
                "revenue": round(float(rng.uniform(0.5, 2.0)), 2) if sold else None,
                "device": ("phone", "desk, top", 'a "tablet"')[rng.integers(3)],
                "age": round(float(rng.normal(40, 9)), 1),
            }
        )
    return rows


def _sections(file: str) -> dict[str, Any]:
    return {
        "source": {"files": file},
        "time": {"unit": "s"},
        "display": {"id": "id", "time": "t", "action": "ad", "propensity": "p"},
        "conversion": {"time": "sold", "value": "revenue"},
        "log": {"attribution_window": "3d", "observed_until": "complete", "reward_max": 2.0},
        "context": {"columns": {"device": "category", "age": "number"}, "dimensions": 4},
    }


def _text(rows: list[dict[str, Any]], delimiter: str) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def write_log(folder: Path, *, file: str, rows: int = ROWS) -> None:
    """Write a spec and its log, in the format that the file's name says."""
    path, table = folder / file, log_rows(rows)
    write_spec(folder, **_sections(file))
    if path.suffix == ".csv":
        path.write_bytes(_text(table, ","))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(_text(table, "\t"), mtime=0))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table))
    elif path.suffix == ".parquet":
        pl.DataFrame(table).write_parquet(path)
    else:
        pl.DataFrame(table).write_ipc(path)


def _two_tables(folder: Path) -> None:
    rows = log_rows()
    sections = _sections("displays.csv")
    sections["conversion"]["source"] = {"files": "sales.parquet", "display": "id"}
    write_spec(folder, **sections)
    displays = [{k: v for k, v in row.items() if k not in ("sold", "revenue")} for row in rows]
    sales = [{k: row[k] for k in ("id", "sold", "revenue")} for row in rows if row["sold"] is not None]
    (folder / "displays.csv").write_bytes(_text(displays, ","))
    pl.DataFrame(sales).write_parquet(folder / "sales.parquet")


def _delays() -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.random.default_rng(5).geometric(0.05, 80) - 1


def _delay_file(folder: Path) -> None:
    rows = [{"delay": int(d), "arm": ("a", "b")[i % 2], "followed": 500} for i, d in enumerate(_delays())]
    (folder / "delays.csv").write_bytes(_text(rows, ","))


def _fits(folder: Path) -> None:
    delays = _delays()
    save_fit(folder / "lognormal.json", fit_family(delays, 200.0, family="lognormal"), tick="1 s")
    save_fit(folder / "geometric.json", fit_family(delays, family="geometric"), tick="round")
    save_fit(folder / "steps.json", fit_nonparametric(delays, 200.0), tick="1 s")


def _lines(folder: Path) -> None:
    (folder / "lines.toml").write_text(LINEAR)
    (folder / "law.csv").write_text("delay,cdf\n0,0.1\n5,0.5\n30,0.9\n200,1.0\n")


def _policies(folder: Path) -> None:
    log = linear_log(300, n_actions=3, dimension=5, mean_delay=20.0, seed=1)
    for spec in ("otflinucb", "delayed-klucb"):
        replay(log, spec, window=50, seed=1).learned.save(folder / f"{spec}.npz")


@cache
def interrupted_study() -> tuple[Log, tuple[ReplayPlan, ...]]:
    """Return the log and the plans of a comparison whose results were kept when it was interrupted."""
    log = linear_log(400, n_actions=3, dimension=5, mean_delay=10.0, seed=1)
    options = ReplayOptions(horizon=60)
    return log, tuple(plan_comparison(log, [as_description(p) for p in ("ucb1", "random")], [50], options))


def kept_in(folder: Path) -> tuple[KeptResults, FoundResults]:
    """Return where that study keeps its results, and what of them is there."""
    log, plans = interrupted_study()
    kept = KeptResults(folder, [plan.policy for plan in plans])
    return kept, kept.find(plans, log)


def _kept(folder: Path) -> None:
    kept, _ = kept_in(folder / "run.partial")
    _, plans = interrupted_study()
    for plan, result in zip(plans, execute_all(plans), strict=True):
        kept.keep(plan, result)


def _converted(folder: Path) -> None:
    source = folder / "source"
    source.mkdir()
    write_log(source, file="log.csv")
    datasets.convert(source / "spec.toml", folder / "log", keep=["device"])
    shutil.rmtree(source)


def _decisions(folder: Path, kind: str) -> None:
    found = decisions.events(ROWS)
    lines = decisions.as_text(found) if kind == "text" else [json.dumps(one) for one in found]
    decisions.written(folder, lines, kind=kind)


SEEDS: dict[str, Callable[[Path], object]] = {
    "csv": partial(write_log, file="log.csv"),
    "tsv": partial(write_log, file="log.tsv.gz"),
    "jsonl": partial(write_log, file="log.jsonl"),
    "dsjson": partial(_decisions, kind="dsjson"),
    "vw-text": partial(_decisions, kind="text"),
    "parquet": partial(write_log, file="log.parquet"),
    "ipc": partial(write_log, file="log.arrow"),
    "two-tables": _two_tables,
    "delays": _delay_file,
    "fit": _fits,
    "study": lambda folder: (folder / "study.toml").write_text(STUDY),
    "arms": lambda folder: (folder / "arms.toml").write_text(BERNOULLI),
    "lines": _lines,
    "converted": _converted,
    "policy": _policies,
    "kept": _kept,
}


def make(root: Path, names: Iterable[str]) -> None:
    """Write the folders of these names into `root`."""
    for name in names:
        (root / name).mkdir(parents=True)
        SEEDS[name](root / name)
