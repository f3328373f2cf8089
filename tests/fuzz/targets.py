"""What is read, by whom, and what a sound result of it is."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evaluator import datasets, load_policy
from evaluator.comparisons.study_file import read_study
from evaluator.delays.fit_file import load_fit
from evaluator.delays.laws import given_cdf
from evaluator.errors import PolicyError
from evaluator.log import Log
from evaluator.outputs.kept_folder import kept_beside
from evaluator.reading.delay_file import read_delay_file
from evaluator.reading.options import DelayFileOptions
from evaluator.replays.learned.policy import LearnedPolicy
from evaluator.worlds.world import load_problem
from tests.cli.runs import evaluate
from tests.fuzz.seeds import kept_in


class UnsoundError(AssertionError):
    """What was read without an error is not what it should be."""


@dataclass(frozen=True)
class Target:
    """Something that reads files.

    Parameters
    ----------
    name
        Name of the target.
    seed
        Folder of `seeds.make` with its files.
    damaged
        Glob of the files that are damaged.
    read
        Reads the folder and returns what it found in a form that can be compared; raises UnsoundError.
    sealed
        What the files say themselves of what they must hold. ``whole``: all; then what is read is what was written, or
        an error. ``bytes``: the checksums of an archive, which whoever rewrites it rewrites too. Nothing: ``""``.
    """

    name: str
    seed: str
    damaged: str
    read: Callable[[Path], Any]
    sealed: Literal["", "bytes", "whole"] = ""


def require(holds: bool, what: str) -> None:
    """Raise UnsoundError unless something holds."""
    if not holds:
        raise UnsoundError(what)


def contents(log: Log) -> dict[str, Any]:
    """Return all that a log says, its columns as digests."""
    log.validated()
    found = {name: hashlib.sha256() for name in log.schema.names}
    for _, batch in log.batches(log.schema.names):
        for name, values in batch.items():
            plain = values if values.dtype != object else np.array([str(v) for v in values])
            found[name].update(plain.tobytes())
    return {
        "displays": {name: digest.hexdigest() for name, digest in found.items()},
        "conversions": log.conversions.to_pydict(),
        "actions": log.actions.to_pydict(),
        "meta": asdict(log.meta),
    }


def read_log(folder: Path) -> dict[str, Any]:
    return contents(datasets.load(folder / "spec.toml"))


def keep_good_rows(folder: Path) -> dict[str, Any]:
    done = datasets.read(folder / "spec.toml", on_error="quarantine", quarantine_at_most=1, keep=["device"])
    require(len(done.log) + done.quarantine.num_rows > 0, "nothing read, nothing said")
    return contents(done.log)


def read_converted(folder: Path) -> dict[str, Any]:
    return contents(datasets.load(folder / "log"))


def read_delays(folder: Path) -> Any:
    rows = read_delay_file(
        folder / "delays.csv", DelayFileOptions(delay_column="delay", by="arm", followed="followed")
    ).rows
    require(bool((rows.delay >= 0).all()) and rows.limit is not None, "delays below 0")
    require(bool((rows.delay <= rows.limit).all()), "delays beyond their limit")
    return rows.delay.tolist()


def read_fits(folder: Path) -> Any:
    found = []
    for file in (folder / f"{name}.json" for name in ("geometric", "lognormal", "steps")):
        saved = load_fit(file)
        cdf = given_cdf(str(file), reach=50, ticks_per_round=lambda tick: 2.0)
        steps = cdf(np.arange(60))
        require(bool(np.isfinite(steps).all()), "a CDF that is no number")
        require(bool((np.diff(steps) >= 0).all()), "a CDF that falls")
        require(bool((steps >= 0).all() and (steps <= 1).all()), "a CDF beyond [0, 1]")
        found.append([saved.tick, saved.source, steps.tolist()])
    return found


def read_words(folder: Path) -> Any:
    said = read_study(folder / "study.toml")
    return asdict(said)


def _scenario(folder: Path, file: str) -> Any:
    log = datasets.load(folder / file, limit=30)
    require(len(log) == 30, "another number of displays than asked for")
    if "arrivals" not in (folder / file).read_text(encoding="utf-8"):
        load_problem(folder / file)
    return contents(log)


def read_arms(folder: Path) -> Any:
    return _scenario(folder, "arms.toml")


def read_lines(folder: Path) -> Any:
    return _scenario(folder, "lines.toml")


def ask_policies(folder: Path) -> Any:
    """Return what learned policies choose; states that anybody may have written may have scores that are no numbers."""
    learned = [load_policy(folder / f"{name}.npz") for name in ("otflinucb", "delayed-klucb")]
    try:
        with np.errstate(all="ignore"):
            return [_asked(policy) for policy in learned]
    except PolicyError as error:
        return str(error)


def _asked(learned: LearnedPolicy) -> list[Any]:
    shape = (learned.setting.rows, learned.setting.dimension)
    vectors = np.linspace(-1, 1, shape[0] * shape[1]).reshape(shape) if shape[1] else None
    found: list[Any] = [learned.labels, learned.rounds, repr(learned.policy)]
    for _ in range(40):
        action = learned.choose(vectors)
        require(0 <= action < len(learned.labels), f"action {action} of {len(learned.labels)}")
        learned.displayed(vectors, action)
        learned.converted(vectors, action, delay=0, value=0.5)
        found += [action, learned.choose(vectors, greedy=True)]
    return found


def take_up(folder: Path) -> Any:
    """Return the kept results, from a copy: damaged ones are removed, for they are computed again."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    try:
        with kept_beside(copy / "run") as kept:
            _, found = kept_in(kept)
    finally:
        shutil.rmtree(copy)
    return {i: [result.to_dict(), result.trajectory.to_pydict()] for i, result in found.results.items()}


def show(folder: Path) -> str:
    return _command(folder, "datasets", "show", str(folder / "log"))


def validate(folder: Path) -> str:
    return _command(folder, "datasets", "validate", str(folder / "spec.toml"))


def _command(folder: Path, *words: str) -> str:
    run = evaluate(*words)
    require(run.code in (0, 2, 3), f"exit code {run.code}: {run.err}")
    require("may be a bug" not in run.err, run.err)
    raw = [c for c in run.out + run.err if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    require(not raw, f"control characters {sorted(set(raw))!r} reach the terminal")
    return run.out.replace(str(folder), "")


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("csv", "csv", "log.csv", read_log),
        Target("tsv", "tsv", "log.tsv.gz", read_log),
        Target("jsonl", "jsonl", "log.jsonl", read_log),
        Target("dsjson", "dsjson", "decisions.dsjson", read_log),
        Target("vw-text", "vw-text", "decisions.txt", read_log),
        Target("parquet", "parquet", "log.parquet", read_log),
        Target("ipc", "ipc", "log.arrow", read_log),
        Target("two-tables", "two-tables", "*.*", read_log),
        Target("quarantine", "csv", "log.csv", keep_good_rows),
        Target("spec", "csv", "spec.toml", read_log),
        Target("spec-of-two", "two-tables", "spec.toml", read_log),
        Target("delays", "delays", "*.csv", read_delays),
        Target("fit", "fit", "*.json", read_fits),
        Target("study", "study", "*.toml", read_words),
        Target("arms", "arms", "*.toml", read_arms),
        Target("lines", "lines", "*.*", read_lines),
        Target("converted", "converted", "log/*", read_converted, sealed="whole"),
        Target("policy", "policy", "*.npz", ask_policies, sealed="bytes"),
        Target("kept", "kept", "run.partial/*", take_up, sealed="whole"),
        Target("show", "converted", "log/*", show),
        Target("validate", "csv", "*.*", validate),
    )
}


def same(found: Any, whole: Any) -> bool:
    """Whether two results are equal to the bit; what is missing of kept results is computed again."""
    as_text = [json.dumps(x, sort_keys=True, default=str) for x in (found, whole)]
    if isinstance(found, dict) and all(isinstance(key, int) for key in found):
        return all(json.dumps(found[i], default=str) == json.dumps(whole[i], default=str) for i in found)
    return as_text[0] == as_text[1]
