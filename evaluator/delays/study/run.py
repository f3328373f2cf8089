"""Make the study of a log's delays, part by part."""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from evaluator.delays.families import FAMILIES, DelayFit
from evaluator.delays.nonparametric import NonparametricFit, fit_nonparametric, quantiles_of
from evaluator.delays.product_limit import Ints, Observed
from evaluator.delays.study.changes import DelayDrift, delay_drift
from evaluator.delays.study.delay_jobs import HERE, DelayJob, DelayPlace, DelayWorkers, Sample, StepsByPart
from evaluator.delays.study.goodness import FamilyChoice, choice_in_ticks, choose_family, delays_under_test
from evaluator.delays.study.heterogeneity import GroupDelays, Heterogeneity, fit_groups, grouped_delays, heterogeneity
from evaluator.delays.study.joint_rate import check_joint, study_joint
from evaluator.delays.study.likelihood import sample_of
from evaluator.delays.study.options import DelayOptions
from evaluator.delays.study.result import FEWEST, DelayStudy, PeriodRate, StudyWindow, mixture, sight, words
from evaluator.delays.study.surrogates import StudiedKind, Surrogate, find_surrogates
from evaluator.delays.study.tail import CANDIDATES, TailIndex, tail_delays, tail_index
from evaluator.delays.study.window_advice import NewestDelays, advise_window, newest_delays, window_shares
from evaluator.errors import DataError, ParameterError, WorkerError
from evaluator.jobs.run_jobs import as_text
from evaluator.jobs.workers import OpenedLast, loaded, tell, this_worker
from evaluator.log import Log
from evaluator.log.delay_rows import DelayRows, delay_rows, delays_hash
from evaluator.log.log_tables import REFUNDS, SALES
from evaluator.log.reward_kinds import event_kinds, events_of, may_be_below_0
from evaluator.replays.rounds.clock import on_clock, start_clock
from evaluator.replays.rounds.survey import survey
from evaluator.streams import seed_stream
from evaluator.units import duration_ticks, parse_whole, without_ticks

# Laws are told apart with far fewer conversions; beyond this a random sample is fitted, and the study says so.
LAW_ROWS = 200_000
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
DRIFT_ROWS, DRIFT_PERMUTATIONS = 50_000, 399
# The conversion rate of a period whose youngest conversion had less than this chance to show is not known.
LEAST_SEEN = 0.2
# A law's mean is believed if at least this share of it lies within what the log can see.
BELIEVED = 0.99


def study_log(log: Log, options: DelayOptions, *, by: str | None, workers: DelayWorkers = HERE) -> DelayStudy:
    """Return the study of a log's delays (`evaluator.study_delays`); errors are those of `study_rows` and the parts."""
    if options.joint:
        check_joint(log)  # before what takes long
    first, *others = event_kinds(log)
    apart = replace(options, joint=False)
    study = _study_kind(log, apart if first == REFUNDS else options, by=by, kind=first, workers=workers)
    more = {kind: _study_kind(log, apart, by=by, kind=kind, workers=workers) for kind in others}
    refunds = more.pop(REFUNDS, None)
    surrogates = () if first == REFUNDS else _surrogates(log, study, more)
    return replace(study, refunds=refunds, outcomes=more, surrogates=surrogates)


def _surrogates(log: Log, study: DelayStudy, outcomes: dict[str, DelayStudy]) -> tuple[Surrogate, ...]:
    """Return what the outcomes that are no losses say of the reward."""
    reward, *others = (
        StudiedKind(name, events_of(log, name), float(of.fit.quantiles([0.5])[0]), of.advice.recommended, of.rows.stamp)
        for name, of in ((SALES, study), *outcomes.items())
        if name == SALES or not may_be_below_0(log, name)
    )
    displays = len(log) if study.rows.displays is None else study.rows.displays
    return find_surrogates(log, reward, others, displays=displays, fewest=FEWEST, level=study.options.level)


def steps(log: Log | None, options: DelayOptions, *, grouped: bool) -> int:
    """Return what the numbers add up to that a study calls its `advance` with; None for the log of a bare file."""
    kinds = 1 if log is None else len(event_kinds(log))
    return kinds * (_law_steps(options) + (_pair_steps(options) if grouped else 0) + CANDIDATES)


def _law_steps(options: DelayOptions) -> int:
    return len(FAMILIES if options.families is None else options.families) + options.bootstraps


def _pair_steps(options: DelayOptions) -> int:
    return options.groups * (options.groups - 1) // 2


def _study_kind(log: Log, options: DelayOptions, *, by: str | None, kind: str, workers: DelayWorkers) -> DelayStudy:
    log = events_of(log, kind)
    rows = delay_rows(log, by=by)
    in_rounds = None
    if rows.tick_seconds is not None and any(_is_rounds(window) for window in options.windows or ()):
        seen = survey(log)
        clock = start_clock(seen, "traffic", traffic_share=1.0, acceptance=1.0)
        delay = on_clock(seen.delay, clock)
        limit = None if seen.limit is None else np.maximum(on_clock(seen.limit, clock), delay)
        in_rounds = Observed(delay, limit)
    study = study_rows(rows, options, in_rounds=in_rounds, by=by, kind=kind, workers=workers)
    if not options.joint:
        return study
    try:
        since = None if study.newest is None else study.newest.since
        return replace(study, joint=study_joint(log, rows.periods, since=since, confidence=options.level))
    except DataError as error:
        return replace(study, missing={**study.missing, "joint": f"{error.what} {error.remedy.capitalize()}"})


def study_rows(
    rows: DelayRows,
    options: DelayOptions,
    *,
    in_rounds: Observed | None = None,
    by: str | None = None,
    kind: str = "",
    workers: DelayWorkers = HERE,
) -> DelayStudy:
    """Return the study of delays alone, all that there is of a bare file: `joint` needs a log.

    Windows in rounds are judged by delays `in_rounds`, displays of the traffic, shape (n,). None where time counts
    rounds; of a bare file a round lasts as long as the traffic's mean. `by` and `kind` say what makes the groups of a
    log's rows, and which of its events they are, by which workers find them (`StudiedDelays`).

    Raises DataError where there are no delays, or impossible ones, ParameterError where an option does not fit, and
    UnknownNameError where there is no such family.
    """
    usual = ["100", "500", "1000", "2000", "5000"] if rows.tick_seconds is None else ["1h", "1d", "7d", "30d"]
    asked = [_parsed(text, rows) for text in (usual if options.windows is None else options.windows)]
    fit = _worded(fit_nonparametric(rows.delay, rows.limit, confidence=options.level), rows)
    missing: dict[str, str] = {}
    told = StepsByPart(workers.advance)
    workers = replace(workers, advance=told.advance, jobs=options.jobs)
    if workers.kept is not None or workers.executor is not None:
        plain = StudiedDelays(workers.place, by, kind, options.seed, delays_hash(rows))
        workers = replace(workers, studied=plain)
    studied = StudiedRows(rows, options.seed)
    with told.part(_law_steps(options)):
        choice = _laws(studied, options, missing, workers)
    drift = _drift(rows, options, missing)
    newest = None
    if rows.periods is not None and drift is not None:
        seen, level = Observed(rows.delay, rows.limit), options.level
        newest = newest_delays(seen, rows.periods.of, drift, confidence=level, rows=DRIFT_ROWS, seed=options.seed)
    rounds = fit if newest is None else newest.fit
    if in_rounds is not None:
        if newest is not None and rows.periods is not None:
            in_rounds = in_rounds.take(rows.periods.of >= newest.since)
        rounds = fit_nonparametric(*in_rounds, confidence=options.level)
    advice = advise_window(
        fit, [t for _, t, _, _ in asked],
        law=_believed(choice, rows), share=options.share, shortest=rows.stamp, newest=newest,
    )  # fmt: skip
    reason, of = (without_ticks(said, rows.tick_seconds) for said in (advice.reason, advice.mean_source))
    advice = replace(advice, reason=reason, mean_source=of)
    with told.part(0 if rows.group is None else _pair_steps(options)):
        groups, test = _groups(studied, options, missing, workers)
    with told.part(CANDIDATES):
        tail = _tail(studied, options, missing, workers)
    return DelayStudy(
        rows=rows,
        options=options,
        sight=(*sight(rows, fit), *mixture(rows, newest)),
        fit=fit,
        quantiles=quantiles_of(fit, LEVELS),
        choice=choice,
        windows=tuple(
            StudyWindow(text, ticks, count, window_shares(rounds, [count])[0], True)
            if counted and in_rounds is not None and count is not None
            else StudyWindow(text, ticks, count, share, counted)
            for (text, ticks, count, counted), share in zip(asked, advice.windows, strict=True)
        ),
        advice=advice,
        groups=groups,
        heterogeneity=test,
        tail=tail,
        drift=drift,
        newest=newest,
        rates=_rates(rows, fit, newest),
        missing=missing,
    )


def _worded(fit: NonparametricFit, rows: DelayRows) -> NonparametricFit:
    return replace(fit, source=without_ticks(fit.source, rows.tick_seconds))


def _is_rounds(window: str | int) -> bool:
    with suppress(ValueError):
        int(str(window))
        return True
    return False


def _parsed(window: str | int, rows: DelayRows) -> tuple[str, float, float | None, bool]:
    """Return a window as written, in ticks, in rounds, and whether rounds were asked for."""
    text = str(window).strip()
    known = bool(np.isfinite(rows.rate))
    if not _is_rounds(text):
        if rows.tick_seconds is None:
            raise ParameterError(
                f"`windows='{text}'`: this log counts rounds, not time.", remedy="give windows in rounds: 2000."
            )
        ticks = _whole(duration_ticks(text, rows.tick_seconds))
        return text, ticks, ticks * rows.rate if known else None, False
    rounds = float(parse_whole(text) or 0)
    if rounds < 1:
        raise ParameterError(f"`windows={window!r}` is out of range.", remedy="take at least one round.")
    if known:
        return text, _whole(rounds / rows.rate), rounds, True
    if rows.tick_seconds is None:
        return text, rounds, rounds, True
    raise ParameterError(
        f"`windows='{text}'`: rounds have no length here, as the traffic rate is unknown.",
        remedy="give windows as durations: 7d.",
    )


def _whole(ticks: float) -> float:
    """Return ticks that are whole but for rounding as whole ones: a delay of 7 d comes within 7 d, in any unit."""
    return float(round(ticks)) if abs(ticks - round(ticks)) <= 1e-13 * abs(ticks) else ticks


def _laws(
    studied: StudiedRows, options: DelayOptions, missing: dict[str, str], workers: DelayWorkers
) -> FamilyChoice | None:
    rows, n = studied.rows, len(studied.rows.delay)
    if n < FEWEST:
        missing["laws"] = f"{n} conversions say nothing of a law's shape; {FEWEST} are the fewest"
        return None
    if rows.delay.min() == rows.delay.max():
        missing["laws"] = f"all delays are {words(rows, float(rows.delay[0]))}, which is no law's shape"
        return None
    names = options.families
    if rows.tick_seconds is not None and (names is None or rows.stamp > 1):
        # It counts rounds: on time its law would be another in seconds than in minutes.
        names = [name for name in (FAMILIES if names is None else names) if name != "geometric"]
    choice = choose_family(
        studied.sample("laws"), lambda: studied.sample("bootstraps"),
        families=names, bootstraps=options.bootstraps, seed=options.seed, workers=workers,
    )  # fmt: skip
    choice = choice_in_ticks(choice, rows.stamp)
    fits = (
        replace(fit, notes=tuple(without_ticks(note, rows.tick_seconds) for note in fit.notes))
        for fit in choice.comparison.fits
    )
    return replace(choice, comparison=replace(choice.comparison, fits=tuple(fits)))


def _believed(choice: FamilyChoice | None, rows: DelayRows) -> DelayFit | None:
    """Return the best law if it fits and hardly extrapolates: a mean is mostly made of delays that no one has seen."""
    if choice is None or not choice.fits:
        return None
    law = choice.comparison.best_fit
    return law if rows.limit is None or law.cdf(law.longest) >= BELIEVED else None


def _groups(
    studied: StudiedRows, options: DelayOptions, missing: dict[str, str], workers: DelayWorkers
) -> tuple[tuple[GroupDelays, ...], Heterogeneity | None]:
    rows = studied.rows
    if rows.group is None:
        missing["groups"] = "no groups were asked for: `by` names a column"
        return (), None
    sizes = np.sort(np.unique(rows.group, return_counts=True)[1])[::-1]
    # Of groups as large as the last that may stand alone, those that come with it stand alone too.
    smallest = max(FEWEST, int(sizes[options.groups - 1]) if len(sizes) >= options.groups else 0)
    found = tuple(
        replace(group, fit=_worded(group.fit, rows))
        for group in fit_groups(rows.delay, rows.limit, groups=rows.group, smallest=smallest, confidence=options.level)
    )
    try:
        test = heterogeneity(studied.sample("permutations"), compared=options.groups, workers=workers)
    except DataError as error:
        missing["heterogeneity"] = error.what
        return found, None
    return found, test


def _tail(
    studied: StudiedRows, options: DelayOptions, missing: dict[str, str], workers: DelayWorkers
) -> TailIndex | None:
    rows = studied.rows
    try:
        if rows.delay.min() == rows.delay.max():
            raise DataError("all delays are alike, and have no tail")
        return tail_index(studied.sample("tail"), confidence=options.level, workers=workers)
    except DataError as error:
        missing["tail"] = without_ticks(error.what, rows.tick_seconds)
        return None


def _drift(rows: DelayRows, options: DelayOptions, missing: dict[str, str]) -> DelayDrift | None:
    if rows.periods is None:
        missing["drift"] = "the displays have no times"
        return None
    if len(rows.delay) < FEWEST:
        missing["drift"] = f"{len(rows.delay)} conversions; {FEWEST} are the fewest"
        return None
    # Young periods could show short delays only: half of the conversions could show as much as this.
    longest = None if rows.limit is None else float(np.median(rows.limit))
    return delay_drift(
        rows.delay, rows.limit, days=rows.periods.of, longest=longest, false_alarms=_false_alarms(options),
        permutations=max(DRIFT_PERMUTATIONS, math.ceil(20.0 / _false_alarms(options))), rows=DRIFT_ROWS,
        seed=options.seed,
    )  # fmt: skip


def _false_alarms(options: DelayOptions) -> float:
    """Return the level of the test: where it misses a change, the intervals that rest on it are wrong."""
    return round(1.0 - options.level, 12)


def _rates(rows: DelayRows, fit: NonparametricFit, newest: NewestDelays | None) -> tuple[PeriodRate, ...]:
    if rows.periods is None:
        return ()
    of, displays = rows.periods.of, rows.periods.displays
    seen = np.bincount(of, minlength=len(displays))
    chance = np.ones(len(of)) if rows.limit is None else fit(rows.limit)
    if rows.limit is not None and newest is not None:
        since = newest.fit(rows.limit) * newest.reach(newest.ratio)
        chance = np.where(of >= newest.since, since, newest.before(rows.limit))
    least = np.ones(len(displays))
    np.minimum.at(least, of, chance)
    corrected = np.bincount(of, 1.0 / np.maximum(chance, 1e-9), minlength=len(displays))
    return tuple(
        PeriodRate(p, n, c, c / n, total / n if low >= LEAST_SEEN else None)
        for p, (n, c, total, low) in enumerate(
            zip(displays.tolist(), seen.tolist(), corrected.tolist(), least.tolist(), strict=True)
        )
        if n
    )


class StudiedRows:
    """Delays of a study, and the samples that its jobs compute on, all by one seed."""

    def __init__(self, rows: DelayRows, seed: int) -> None:
        self.rows, self._seed = rows, seed
        self._samples: dict[str, Sample] = {}
        self._making = Lock()

    def sample(self, of: str) -> Sample:
        """Return what the jobs of one part compute on: laws, bootstraps, permutations or tail.

        Raises DataError where there are no such groups, or the delays are impossible.
        """
        with self._making:
            if of not in self._samples:
                self._samples[of] = self._made(of)
            return self._samples[of]

    def _made(self, of: str) -> Sample:
        rows = self.rows
        if of == "laws":
            return sample_of(*self._of_laws())
        if of == "bootstraps":
            return delays_under_test(*self._of_laws(), seed=self._seed)
        if of == "permutations":
            assert rows.group is not None
            return grouped_delays(rows.delay, rows.limit, groups=rows.group, smallest=FEWEST, seed=self._seed)
        assert of == "tail"
        return tail_delays(rows.delay, rows.limit, width=rows.stamp)

    def _of_laws(self) -> tuple[Ints, Ints | None]:
        """Return the delays that laws are fitted to and their limits, in what the time stamps tell apart."""
        rows, n = self.rows, len(self.rows.delay)
        kept: Ints | slice = slice(None)
        if n > LAW_ROWS:
            kept = seed_stream(self._seed).choice(n, LAW_ROWS, replace=False)
        limit = None if rows.limit is None else (rows.limit // rows.stamp)[kept]
        return (rows.delay // rows.stamp)[kept], limit


@dataclass(frozen=True)
class StudiedDelays:
    """What a worker has to know of a study, as plain values.

    The log or the file lies at `place`; `by` makes groups of a log's delays, None for none; `kind` is the kind of
    events that are studied, empty for all conversions; `content` is the hash of the delays
    (`evaluator.log.delay_rows.delays_hash`).
    """

    place: DelayPlace | None
    by: str | None
    kind: str
    seed: int
    content: str

    def key(self, job: DelayJob) -> str:
        """Return the hash of all that fixes what a job finds, wherever the delays lie."""
        said = [self.content, self.seed, loaded(), job.of, as_text(replace(job, studied=None))]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def open(self, of: str) -> Sample:
        """Open the delays, on a worker, and return the sample that the jobs of one part compute on.

        Raises WorkerError where the worker is refused because it has other delays under the name.
        """
        return _opened(self).sample(of)


def _open(studied: StudiedDelays) -> StudiedRows:
    assert studied.place is not None
    there = studied.place.opened()
    rows = there if isinstance(there, DelayRows) else delay_rows(events_of(there, studied.kind), by=studied.by)
    if delays_hash(rows) != studied.content:
        raise WorkerError(
            f"Worker {this_worker()} is refused: it reads other delays than the command does.",
            remedy="let all workers see the same files, or copy them to each.",
        )
    tell("read the delays before its first job")
    return StudiedRows(rows, studied.seed)


_opened = OpenedLast(_open)
