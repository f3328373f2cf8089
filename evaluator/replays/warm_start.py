"""A replay that goes on from what a policy has learned elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from evaluator.engine.eligible_choice import NO_KEY
from evaluator.engine.log_replay import Begun
from evaluator.errors import ParameterError, UsageError
from evaluator.findings.codes import OUTSIDE_LEARNED_REWARDS, UNKNOWN_TRAINING
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.log.vectors_of_displays import in_order
from evaluator.options.deployment import EVENT, OBJECTIVE, REVENUE_ALONE, Schedule
from evaluator.policies.base import Setting
from evaluator.replays.learned.file import content_hash
from evaluator.replays.learned.policy import LearnedPolicy, load_policy
from evaluator.replays.learned.policy_metadata import LearnedFrom
from evaluator.replays.options import ReplayOptions
from evaluator.replays.rounds.clock import ReplayWindow
from evaluator.results.json_documents import Count, Sha256, in_document, omitted
from evaluator.units import NO_WINDOW


@dataclass(frozen=True)
class LearnedLog:
    """Log that a policy learned from: its name, and hash of its source."""

    log: str
    fingerprint: str


@dataclass(frozen=True, eq=False)
class WarmStart:
    """What a replay begins with.

    Parameters
    ----------
    learned
        Policy as it was handed over; replays go on with copies.
    file
        Name of the file that it is from; None where it was in memory.
    sha256
        Hash, in hex, of all that the policy knows.
    most
        Largest number of rounds of this replay.
    """

    learned: Annotated[LearnedPolicy, *omitted]
    file: str | None
    sha256: Sha256
    most: Annotated[int, *omitted] = 0

    @in_document
    @property
    def rounds(self) -> Count:
        """Number of rounds in which the policy has learned."""
        return self.learned.rounds

    @in_document
    @property
    def pending(self) -> Count:
        """Number of conversions that are still to come."""
        return int(self.learned.pending.size[0])

    @in_document
    @property
    def logs(self) -> tuple[LearnedLog, ...]:
        """Logs that the policy learned from."""
        return tuple(LearnedLog(of.log, of.fingerprint) for of in self.learned.learned_from)

    def begun(self, repeat: int) -> Begun:
        """Return a copy to go on with: the first repeat with the policy's own stream, the others with theirs."""
        own = self.learned.copied()
        return Begun(
            state=own.state,
            rounds=own.rounds,
            prepared=own.fresh,
            pending=own.pending,
            rng=own.rng if repeat == 0 else None,
            last=own.rounds + self.most,
            tie_key=own.tie_key if own.fresh else NO_KEY,
        )

    def asked(self, options: ReplayOptions) -> ReplayOptions:
        """Return the options, with the window that the policy knows where none is given.

        Raise ParameterError if one says what the policy was told already, or cannot be had of a policy that has begun.
        """
        if options.sampler == "queue":
            raise ParameterError(
                "`sampler='queue'` and `warm_start` exclude each other.", remedy="take rejection or keep."
            )
        if options.delays != "log":
            raise ParameterError(
                "`delays` and `warm_start` exclude each other.",
                remedy="the policy goes on with the delays it was told.",
            )
        taught_by = self.learned.learned_from[-1].taught_by if self.learned.learned_from else options.taught_by
        if taught_by != options.taught_by and not {taught_by, options.taught_by} <= {OBJECTIVE, REVENUE_ALONE}:
            raise ParameterError(
                f"`learn_from={options.taught_by!r}`, and the policy learned from {taught_by}.",
                remedy=f"go on with `learn_from={taught_by!r}`.",
            )
        if options.window is not None or self.learned.setting.window == NO_WINDOW:
            return options
        return replace(options, window=self._asked_window or self.learned.setting.window)

    def learned_otherwise(self, schedule: Schedule | None) -> str:
        """Return a clause on when it learned, where that is not as it learns here; else nothing."""
        here = EVENT if schedule is None else schedule.words
        there = self.learned.learned_from[-1].learns if self.learned.learned_from else here
        there, here = (f"at each {EVENT}" if learns == EVENT else learns for learns in (there, here))
        return "" if there == here else f"; there it learned {there}, and here it learns {here}"

    @property
    def _asked_window(self) -> str:
        """The window that was asked for where it learned last; empty where nobody noted it."""
        return self.learned.learned_from[-1].window if self.learned.learned_from else ""

    def window(self, found: ReplayWindow) -> ReplayWindow:
        """Return a log's window as the policy knows it: a duration spans what it spanned where the policy learned.

        Raise ParameterError if it is another one.
        """
        own, asked = self.learned.setting.window, self._asked_window
        if found.rounds != own if found.ticks is None or not asked else found.text != asked:
            told = asked or ("none" if own == NO_WINDOW else f"{own:,} rounds")
            raise ParameterError(
                f"`window='{found.text}'`, and the policy learned with a window of {told}.",
                remedy="leave `window` out: the policy's own is taken.",
            )
        return replace(found, rounds=own)

    def fitted(self, log: Log, vectors: str | None, setting: Setting, options: ReplayOptions) -> WarmStart:
        """Return it for a replay on a log, of as many rounds as the setting says; ParameterError if they do not fit."""
        told = self.learned.setting
        if (setting.rows, setting.dimension) != (told.rows, told.dimension):
            raise ParameterError(
                f"The policy learned from {_vectors(told)} a display, and log {log.meta.name!r} has "
                f"{_vectors(setting)}.",
                remedy="read both logs with the same `features`.",
            )
        theirs, ours = self.learned.encoder, log.meta.encoder if vectors == "context" else None
        if theirs is not None and ours is not None and theirs != ours:
            pairs = zip(theirs.columns, ours.columns, strict=False)
            other = next((f"column {a.name!r}" for a, b in pairs if a != b), "the contexts")
            raise ParameterError(
                f"Log {log.meta.name!r} encodes {other} otherwise than the log that the policy learned from.",
                remedy="encode both alike; one-hot coordinates are those of the labels that occur: hash instead.",
            )
        left = told.horizon - self.learned.rounds
        if left <= 0 or (options.horizon is not None and options.horizon > left):
            asked = "" if options.horizon is None else f", and `horizon={options.horizon}` asks for more"
            raise ParameterError(
                f"{self.learned.policy.name} was started for {told.horizon:,} rounds and has lived "
                f"{self.learned.rounds:,}: {max(left, 0):,} are left{asked}.",
                remedy="ask for fewer, or let it learn with a longer `horizon`.",
            )
        learned = self.learned
        if told.among and not setting.among:
            raise ParameterError(
                f"The policy learned where not every action is always eligible, and in log {log.meta.name!r} all are.",
                remedy="begin this replay with nothing.",
            )
        if setting.among and not told.among:  # what it knows of its actions counts all of them
            learned = replace(learned, setting=replace(told, playable=told.arms))
        return replace(
            self, learned=learned, most=min(setting.horizon if options.horizon is None else options.horizon, left)
        )

    def refuse_same(self, replayed: LearnedFrom | None) -> None:
        """Raise UsageError where a policy would be judged on displays that it may have learned from."""
        for source in self.learned.learned_from:
            if replayed is not None and source.shares(replayed):
                raise UsageError(
                    f"The policy learned from displays of this log, {source.log!r}: its value on them would tell what "
                    "it remembers, not what it would earn.",
                    remedy="replay others: let it learn with `final='last:50%'`, go on with `delays_from='first:50%'`.",
                )

    @property
    def assumption(self) -> str:
        """What numbers of its replay rest on."""
        logs = dict.fromkeys(repr(source.log) for source in self.logs)
        where = f"log {' and '.join(logs)}" if logs else "a log that its file does not name"
        late = (
            f", {self.pending:,} conversions of which are still to come and count as delivered here"
            if self.pending
            else ""
        )
        return (
            f"warm start: the policy began with what it had learned in {self.rounds:,} rounds on {where} "
            f"({self.file or 'in memory'}, SHA-256 {self.sha256[:12]}){late}; value and regret are of the rounds of "
            "this replay alone, and the delays, largest reward and horizon it knows are those it was told there"
        )

    def warnings(self, least: float, largest: float) -> list[Finding]:
        """Return what to read before the numbers, of a log whose displays earn from `least` to `largest`."""
        said, told = [], self.learned.setting
        if self.learned.policy.unit_rewards and least < told.reward_min:
            said.append(
                OUTSIDE_LEARNED_REWARDS.found(
                    f"A display of this log earns as little as {least:g}, and the policy learned that none earns "
                    f"less than {told.reward_min:g}: it is told less of such displays than its theory takes.",
                    reward=least,
                )
            )
        if self.learned.policy.unit_rewards and largest > told.reward_max:
            said.append(
                OUTSIDE_LEARNED_REWARDS.found(
                    f"A display of this log earns up to {largest:g}, and the policy learned rewards as shares of "
                    f"{told.reward_max:g}: it is told more than 1 of such displays.",
                    reward=largest,
                )
            )
        if not self.learned.learned_from:
            said.append(
                UNKNOWN_TRAINING.found(
                    "The policy does not say what it learned from. If it was this log, its value here is what it "
                    "remembers."
                )
            )
        return said


def _vectors(setting: Setting) -> str:
    if setting.rows == 0:
        return "no vectors"
    many = "a vector" if setting.rows == 1 else f"{setting.rows:,} vectors"
    return f"{many} of {setting.dimension:,} coordinates"


def warm_start(policy: Any, options: ReplayOptions) -> WarmStart:
    """Return what a replay of a policy that has learned begins with.

    A policy is a description, whose file the option `warm_start` may name, or a `LearnedPolicy`, which goes on itself.
    Errors are those of `evaluator.load_policy`; a plain Python class is refused, too.
    """
    file = options.warm_start
    learned = (policy if isinstance(policy, LearnedPolicy) else load_policy(str(file), policy=policy)).copied()
    return WarmStart(learned, None if file is None else Path(file).name, content_hash(learned.content()))


def learned_among(policies: Sequence[Any], options: ReplayOptions) -> list[tuple[Any, ReplayOptions]]:
    """Return each policy with its options: the one that `warm_start` is of as it was learned, the others without it.

    Raise ParameterError if it is of none of them.
    """
    if options.warm_start is None:
        return [(policy, options) for policy in policies]
    found: list[tuple[Any, ReplayOptions]] = []
    why = None
    for policy in policies:
        try:
            found.append((load_policy(options.warm_start, policy=policy), options))
        except ParameterError as error:
            why = error
            found.append((policy, replace(options, warm_start=None)))
    if why is not None and not any(asked.warm_start for _, asked in found):
        raise why
    return found


def numbered_as_learned(log: Log, policies: Sequence[Any]) -> Log:
    """Return a log with its actions numbered as the policies that have learned number them.

    Raise ParameterError if these do not number them alike; or as `in_order` does.
    """
    orders = {policy.labels for policy in policies if isinstance(policy, LearnedPolicy)}
    if len(orders) > 1:
        raise ParameterError(
            "The learned policies number their actions differently.", remedy="let them learn from one log."
        )
    return in_order(log, orders.pop()) if orders else log
