"""A study of delays in jobs: whoever computes them and wherever it was interrupted, what it finds is the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from evaluator import DelayStudy, study_delays
from evaluator.comparisons.log_places import at_a_place
from evaluator.delays.study import goodness, heterogeneity, run, tail
from evaluator.delays.study.delay_jobs import DelayJob, DelayWorkers
from evaluator.delays.study.fitting import LawJob, fit_sample
from evaluator.delays.study.goodness import BootstrapsJob, delays_under_test
from evaluator.delays.study.heterogeneity import grouped_delays, permutable, permutation_test, permuted
from evaluator.delays.study.options import DelayOptions
from evaluator.delays.study.run import StudiedDelays, steps, study_log, study_rows
from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import compute_jobs
from evaluator.jobs.workers import loaded
from evaluator.log import Log
from evaluator.log.delay_rows import delay_rows, delays_hash
from evaluator.outputs.kept_folder import KeptJobs, kept_beside
from evaluator.reading.canonical import write_canonical
from evaluator.reading.delay_file import place_of_file, read_delay_file
from evaluator.reading.options import DelayFileOptions
from evaluator.streams import seed_stream, state_of
from tests.cli.runs import validate
from tests.delays.laws import truncated_draws
from tests.jobs.stopping import Stopping
from tests.logs import build_log

ASKED: dict[str, Any] = {"families": ["exponential", "lognormal", "lognormal-mixture-2"], "bootstraps": 25, "groups": 3}
DAY = 86_400


def sold(seed: int = 0, *, refunds: bool = True) -> Log:
    """A log whose actions differ in their delays, with refunds among its conversions."""
    rng = np.random.default_rng(seed)
    n = 3000
    time, action = np.sort(rng.integers(0, 40 * DAY, n)), rng.integers(0, 3, n)
    delay = rng.exponential(np.array([1, 1, 6])[action] * DAY).astype(np.int64)
    of = np.flatnonzero((rng.random(n) < 0.5) & (time + delay <= 40 * DAY))
    value = np.where(refunds & (rng.random(of.size) < 0.1), -1.0, 1.0)
    return build_log(
        time=time, action=action, conversion_display=of, conversion_time=(time + delay)[of], conversion_value=value,
        n_actions=3, tick="s", name="sold", observed_until=40 * DAY,
    )  # fmt: skip


LOG = sold()


def said(found: DelayStudy) -> list[str]:
    told = found.to_dict()
    for one in (told, told["refunds"] or {}):
        one.pop("options", None)
    return [json.dumps(told), *(repr(getattr(found, f"{name}_table").to_pydict()) for name in ("cdf", "law", "group"))]


@pytest.fixture(scope="module")
def alone() -> list[str]:
    found = study_delays(LOG, jobs=1, **ASKED)
    document = found.to_dict()
    validate(document)
    assert document["refunds"]["schema"] == document["schema"]
    with pytest.raises(jsonschema.ValidationError):
        validate({**document, "refunds": {**document["refunds"], "typo": 1}})
    assert found.heterogeneity is not None
    assert found.heterogeneity.pairs[0].p == 1 / 1000  # permutations to the end
    return said(found)


@pytest.fixture
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    run._opened.clear()
    monkeypatch.setattr(goodness, "_OF_MIXTURES", 4)
    monkeypatch.setattr(goodness, "_OF_OTHERS", 7)
    monkeypatch.setattr(heterogeneity, "_WORK", 200_000)
    monkeypatch.setattr(tail, "_WORK", 10_000)


def test_threads_and_workers_find_what_one_thread_finds(
    alone: list[str], small_jobs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(study_delays(LOG, jobs=3, **ASKED)) == alone
    computed: list[str] = []
    opened = DelayJob.open
    monkeypatch.setattr(DelayJob, "open", lambda job: computed.append(job.of) or opened(job))
    read: list[object] = []
    own: Callable[..., Any] = run.delay_rows
    monkeypatch.setattr(run, "delay_rows", lambda *of, **by: read.append(1) or own(*of, **by))
    with ThreadPoolExecutor(2) as pool:
        assert said(study_delays(LOG, executor=pool, **ASKED)) == alone
    assert len(read) == 4  # of the refunds, and of the rest: here, and by the workers, once each
    assert {of: computed.count(of) for of in ("laws", "bootstraps")} == {"laws": 6, "bootstraps": 2 * 7}
    assert computed.count("permutations") > 8
    assert computed.count("tail") > 2


def test_other_processes_read_the_log_themselves(alone: list[str], tmp_path: Path) -> None:
    write_canonical(LOG, tmp_path)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert said(study_delays(tmp_path, executor=pool, **ASKED)) == alone


def test_groups_of_a_column_are_those_of_workers(tmp_path: Path) -> None:
    rows = [f"{i},{'ab'[i % 2]},{'xyz'[i % 3]},{i + 1 + i % 40 if i % 2 else ''}" for i in range(900)]
    (tmp_path / "log.csv").write_text("\n".join(["t,ad,country,sold", *rows]) + "\n")
    (tmp_path / "spec.toml").write_text(
        'name = "own"\ntitle = "Own"\nlicence = "none"\nsource = { files = "log.csv" }\ntime = { unit = "s" }\n'
        'display = { time = "t", action = "ad", propensity_kind = "uniform" }\nconversion = { time = "sold" }\n'
        'log = { observed_until = "complete" }\n'
    )
    asked = {**ASKED, "by": "country"}
    with ThreadPoolExecutor(2) as pool:
        assert said(study_delays(tmp_path / "spec.toml", executor=pool, **asked)) == said(
            study_delays(tmp_path / "spec.toml", **asked)
        )


def test_a_study_stopped_wherever_it_writes_goes_on_from_there(
    tmp_path: Path, alone: list[str], small_jobs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = Stopping(monkeypatch)
    times, lines = 0, list[str]()
    asked = DelayOptions(**ASKED, jobs=2)
    with ThreadPoolExecutor(2) as pool, at_a_place(LOG, None, {}) as (log, place):
        while True:
            stopping.after_fewer_than(12)
            told: list[int] = []
            executor: Executor | None = pool if times % 2 else None
            try:
                with kept_beside(tmp_path / "run") as folder:
                    spread = DelayWorkers(told.append, KeptJobs(folder, lines.append), executor, place)
                    found = study_log(log, asked, by="action", workers=spread)
                break
            except KeyboardInterrupt:
                times += 1
    assert said(found) == alone
    assert sum(told) == steps(LOG, asked, grouped=True) == 2 * (3 + 25 + 3 + 60)
    assert list(tmp_path.iterdir()) == []
    assert times > 3
    assert times - 2 <= lines.count(f"Took up what was finished before, from {tmp_path / 'run.partial'}.") <= times
    assert len(stopping.keys) == len(set(stopping.keys)) > 30  # none was written twice


def test_what_is_kept_is_taken_up_and_what_is_missing_or_damaged_is_computed(
    tmp_path: Path, alone: list[str], small_jobs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    kept = KeptJobs(tmp_path, lines.append)
    asked = DelayOptions(**ASKED)
    study_log(LOG, asked, by="action", workers=DelayWorkers(kept=kept))
    files = sorted(tmp_path.iterdir())
    files[0].unlink()
    content = files[1].read_bytes()
    files[1].write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    written: list[str] = []
    keep = KeptJobs.keep
    monkeypatch.setattr(KeptJobs, "keep", lambda kept, key, text: written.append(key) or keep(kept, key, text))
    assert said(study_log(LOG, asked, by="action", workers=DelayWorkers(kept=kept))) == alone
    assert sorted(written) == [file.name.partition("-")[0] for file in files[:2]]
    assert f"Damaged, so computed anew: 1 kept in {tmp_path}." in lines
    # Windows, level and jobs change no unit, and more bootstraps go on from fewer; another seed is another study.
    written.clear()
    study_log(LOG, replace(asked, windows=("1d",), level=0.9, jobs=1), by="action", workers=DelayWorkers(kept=kept))
    assert written == []
    study_log(LOG, replace(asked, bootstraps=32), by="action", workers=DelayWorkers(kept=kept))
    assert 2 <= len(written) <= 6
    written.clear()
    other = replace(asked, seed=1)
    again = study_log(LOG, other, by="action", workers=DelayWorkers(kept=kept))
    assert said(again) == said(study_log(LOG, other, by="action"))
    assert len(written) > 30


def delay_file(path: Path, log: Log) -> Path:
    rows = delay_rows(log)
    assert rows.limit is not None
    assert rows.group is not None
    lines = zip(rows.delay, rows.limit, rows.group, strict=True)
    path.write_text("\n".join(["delay_s,followed_s,banner", *(",".join(map(str, line)) for line in lines)]) + "\n")
    return path


def test_a_bare_file_is_read_by_workers_too(tmp_path: Path, small_jobs: None) -> None:
    file = delay_file(tmp_path / "delays.csv", LOG)
    asked = DelayFileOptions(delay_column="delay_s", followed="followed_s", by="banner")
    rows, options = read_delay_file(file, asked).rows, DelayOptions(**ASKED)
    place = place_of_file(file, asked, rows)
    with ThreadPoolExecutor(2) as pool:
        found = study_rows(rows, options, workers=DelayWorkers(executor=pool, place=place))
    assert said(found) == said(study_rows(rows, options))
    run._opened.clear()
    delay_file(file, sold(1))
    with (
        ThreadPoolExecutor(2) as pool,
        pytest.raises(WorkerError, match=r"is refused: it reads other delays under the name .*delays\.csv"),
    ):
        study_rows(rows, options, workers=DelayWorkers(executor=pool, place=place))
    file.unlink()
    with ThreadPoolExecutor(2) as pool, pytest.raises(WorkerError, match="cannot open the file of delays"):
        study_rows(rows, options, workers=DelayWorkers(executor=pool, place=place))


def test_a_worker_with_another_log_is_refused(tmp_path: Path, small_jobs: None) -> None:
    job = LawJob("exponential", 0)
    with at_a_place(LOG, None, {}) as (log, place):
        rows = delay_rows(log, by="action")
        studied = StudiedDelays(place, "action", "", 0, delays_hash(rows))
        assert "exponential" in compute_jobs([replace(job, studied=studied)], loaded())[0]
        for other in (replace(studied, kind="refunds"), replace(studied, by=None)):
            with pytest.raises(WorkerError, match="is refused: it reads other delays than the command does"):
                compute_jobs([replace(job, studied=other)], loaded())
        moved = Path(place.dataset)
        for file in moved.iterdir():
            file.unlink()
        write_canonical(sold(1), moved)
        run._opened.clear()
        with pytest.raises(WorkerError, match="is refused: it reads another log under the name"):
            compute_jobs([replace(job, studied=studied)], loaded())


def test_bootstraps_are_those_of_one_stream_drawn_in_order() -> None:
    delays, limits = truncated_draws(np.random.default_rng(2), "lognormal", displays=900)
    tested = delays_under_test(delays, limits, rows=200, seed=5)
    fit = fit_sample(tested.sample(tested.seen.delay), "lognormal", seed=5)
    rng = seed_stream(5)
    chosen = rng.choice(len(delays), 200, replace=False)
    assert np.array_equal(delays[chosen], tested.seen.delay)
    distances = []
    for _ in range(6):
        drawn = fit.draw(rng, tested.seen.limit, 200)
        again = fit_sample(tested.sample(drawn), "lognormal", start=tuple(fit.parameters.values()))
        distances.append(goodness._distances(again, drawn, tested.seen.limit))
    assert [BootstrapsJob(fit, 2, 6).compute(tested, at) for at in range(2, 6)] == distances[2:]


@pytest.mark.parametrize("means", [(50, 50, 50), (50, 60, 300)])
def test_permutations_are_those_of_one_stream_drawn_in_order(
    means: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heterogeneity, "_AT_ONCE", 20)
    monkeypatch.setattr(heterogeneity, "_WORK", 16_000)
    monkeypatch.setattr(heterogeneity, "PAIR_ROWS", 300)
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(3), 400)
    limits = rng.integers(0, 900, groups.size)
    delays = rng.exponential(np.array(means)[groups]).astype(np.int64)
    seen = delays <= limits
    sample = grouped_delays(delays[seen], limits[seen], groups=groups[seen], smallest=50, seed=4)
    rng, state = seed_stream(4), sample.state
    assert state_of(rng) == state
    for pair, permutations, enough in ((None, 60, 61), ((0, 1), 150, 30), ((0, 2), 150, 30), ((1, 2), 150, 30)):
        expected = slowly(sample, pair, permutations, enough, rng)
        found = permutation_test(
            sample, pair, state, permutations=permutations, enough=enough, workers=DelayWorkers(jobs=2)
        )  # fmt: skip
        assert found[:2] == expected
        state = found.state
        assert state == state_of(rng)


def slowly(
    sample: heterogeneity.GroupedDelays, pair: Any, permutations: int, enough: int, rng: np.random.Generator
) -> tuple[float, float]:
    of, k = np.arange(sample.codes.size), len(sample.labels)
    codes = sample.codes
    if pair is not None:
        of, k, codes = rng.choice(np.flatnonzero(np.isin(codes, pair)), 300, replace=False), 2, codes == pair[1]
    ready = permutable(sample.seen.take(of))
    group = codes[of][ready.kept].astype(np.int64)
    pool, taken = np.empty(group.size, np.int64), np.empty(group.size, np.int64)

    def distance(rows: Any) -> float:
        return heterogeneity._distance(ready.mass, ready.ends, rows, group, k)

    statistic, above = distance(ready.owners), 0
    for drawn in range(1, permutations + 1):
        permuted(ready.rows, ready.eligible, rng.random(group.size), pool, taken)
        above += distance(taken) >= statistic * (1.0 - 1e-12)
        if above == enough:
            return statistic, above / drawn
    return statistic, (1 + above) / (permutations + 1)


def test_a_study_of_all_processors_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def threads(job: Any, items: Any, jobs: int) -> Iterator[Any]:
        asked.append(jobs)
        yield from map(job, items)

    monkeypatch.setattr("evaluator.jobs.run_jobs.in_threads", threads)
    study_delays(LOG, **ASKED)
    assert set(asked) == {os.cpu_count(), 1}  # permutations, which hold Python's lock, in one thread
    asked.clear()
    study_delays(LOG, jobs=1, **ASKED)
    assert set(asked) == {1}
