"""The commands whose results are frozen."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """Words of a command, and what is kept of it beside exit code, stderr and what a terminal of 80 columns shows.

    Parameters
    ----------
    line
        Its words.
    parts
        What else is kept: json, pages (that, the whole report and the page), report (the page that it writes); empty
        for nothing.
    after
        Commands whose outputs it reads.
    """

    line: str
    parts: str = ""
    after: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line)


# What a terminal shows, the whole report, JSON and page.
PAGES = {
    "replay-bundled": "replay -p otflinucb -w 200 --limit 5000",
    "replay-tidy": "replay tidy/spec.toml -p ucb1 -w 1d --reward-max 5",
    "replay-shop": "replay shop/spec.toml -p linucb -w 7d --limit 6000",
    "replay-repeats": "replay tidy/spec.toml -p thompson -w 1d --repeats 3 --horizon 300",
    "replay-final": "replay tidy/spec.toml -p linucb -w 12h --final last:20% --doubly-robust --bootstrap 20",
    "replay-random": "replay tidy/spec.toml -p random --doubly-robust --by device,user",
    "replay-promotions": "replay promotions -p linucb -w 14d --limit 20000 --guardrail 'unsubscribe < +0.02'",
    "compare-shop": "compare shop/spec.toml -p random -p linucb -b random -w 1d,7d --limit 8000 --reward-max 20",
    "compare-bootstrap": (
        "compare tidy/spec.toml -p ucb1 -p thompson -p random --bootstrap 20 --horizon 300 --by device"
    ),
    "compare-ship": (
        "compare tidy/spec.toml -p fixed:action=0 -p fixed:action=2 --final last:40% --ship-if 'uplift > 0'"
    ),
    "compare-audited": "compare tidy/spec.toml -p random -p linucb -b random -w 1d --bootstrap 20 --horizon 200",
    "check-tidy": "check tidy/spec.toml",
    "check-wrong": "check wrong/spec.toml",
    "audit-tidy": "audit tidy/spec.toml -p linucb -p random -w 1d --twins 10 --horizon 200",
    "delays-tidy": (
        "delays tidy/spec.toml --bootstraps 19 --families exponential,weibull --windows 6h,1d --joint --jobs 1"
    ),
    "simulate-arms": "simulate vernade2017-low -p delayed-klucb -p ucb1 --runs 5 --horizon 500",
}
# What a terminal shows, and JSON.
TOLD = {
    # Replays: policies, windows, clocks, samplers.
    "replay-arms": "replay -d vernade2017-low -p delayed-klucb -w 500 --limit 6000",
    "replay-bootstrap": "replay tidy/spec.toml -p delayed-ucb --bootstrap 20 --horizon 300 --cap 4",
    "replay-frozen": "replay tidy/spec.toml -p fixed:action=1 --final last:30% --final-policy exploring",
    "replay-wall": "replay tidy/spec.toml -p klucb --clock wall -w 1d --reward observed --level 0.9",
    "replay-small-share": "replay tidy/spec.toml -p qpm-d -w 1d --traffic-share 0.05 --horizon 5000",
    "replay-sample": "replay tidy/spec.toml -p ucb1 -w 1d --traffic-share 2 --sampling-rate 0.5",
    "replay-queue": "replay moving/spec.toml -p ucb1 --sampler queue -w 12h --immature correct",
    "replay-keep": "replay moving/spec.toml -p ucb1 --sampler keep",
    "replay-quantile": "replay rare/spec.toml -p lints --accept-quantile 0.2",
    "replay-rare": "replay rare/spec.toml -p linucb -w 10h",
    "replay-estimated": "replay bare/spec.toml -p linucb --propensity estimate --final last:20% --bootstrap 20",
    "replay-estimated-context": "replay wrong/spec.toml -p random --propensity estimate:context",
    "replay-overridden": "replay wrong/spec.toml -p ucb1 --propensity uniform --immature correct:device",
    "replay-wrong-final": "replay wrong/spec.toml -p linucb --final last:30%",
    "replay-claimed": "replay claimed/spec.toml -p otflints -w 3h",
    "replay-short-window": "replay bare/spec.toml -p waitlinucb -w 20 --propensity estimate",
    "replay-told-delays": "replay tidy/spec.toml -p delayed-klucb --delays fixed:30 -w 100",
    "replay-delays-from": "replay tidy/spec.toml -p delayed-klucb --delays-from first:20% -w 1d",
    "replay-few-rounds": "replay short/spec.toml -p linucb --bootstrap 20",
    "replay-large-unit": "replay lost/spec.toml -p linucb -w 1d --attribution-window 2d",
    "replay-users": "replay users/spec.toml -p ucb1 --cluster-by user --bootstrap 20 -w 6h",
    "replay-users-unused": "replay users/spec.toml -p patient-bandits --cluster-by user",
    "replay-cap-refunds": "replay users/spec.toml -p thompson -w 6h --reward observed --cap 4",
    "replay-silent": "replay silent/spec.toml -p ucb1",
    "replay-rare-action": "replay rare/spec.toml -p fixed:action=2",
    "replay-bursts": "replay bursts/spec.toml -p ucb1",
    "replay-heavy": "replay moving/spec.toml -p thompson --by device --reward-max 100000",
    "replay-coarse": "replay coarse/spec.toml -p ucb1 -w 36h",
    "replay-weighted": "replay weighted/spec.toml -p ucb1",
    "replay-actions": "replay tidy/spec.toml -p ucb1 --actions banner-0,banner-2 --features device --limit 3000",
    "replay-quarantine": "replay broken/spec.toml -p random --on-error quarantine --quarantine-at-most 5%",
    # Sets of eligible actions, costs, refunds, outcomes, guardrails.
    "replay-sets": "replay sets/spec.toml -p ucb1 -w 1d --immature correct",
    "replay-sets-wall": "replay sets/spec.toml -p linucb --clock wall",
    "replay-wrong-sets": "replay wrong-sets/spec.toml -p random",
    "replay-promotions-revenue": "replay promotions -p delayed-ucb -w 1d --limit 8000 --objective revenue",
    "replay-promotions-profit": (
        "replay promotions -p delayed-ucb -w 1d --limit 8000 --guardrail 'unsubscribe < -50%' --by customer"
    ),
    "replay-promotions-learn": "replay promotions -p thompson -w 2d --limit 8000 --learn-from revenue",
    # Comparisons.
    "compare-promotions": "compare promotions -p random -p ucb1 -w 1d --limit 6000 --guardrail 'unsubscribe < +0.001'",
    "compare-bundled": "compare -p otflinucb -p linucb -w 100,none --limit 4000",
    "compare-failed-check": "compare wrong/spec.toml -p random -p ucb1 --ship-if 'uplift > 0.01'",
    "compare-dont": (
        "compare tidy/spec.toml -p fixed:action=2,fixed:action=0 -b fixed:action=2 --final last:40% "
        "--ship-if 'uplift > 0'"
    ),
    "compare-estimated": "compare bare/spec.toml -p random -p ucb1 -w 6h,1d --propensity estimate --sampler queue",
    "compare-wall": (
        "compare tidy/spec.toml -p random -p ucb1 --clock wall --accept-quantile 0.1 --ship-if 'uplift > 0'"
    ),
    "compare-users": (
        "compare users/spec.toml -p random -p ucb1 --cluster-by user --bootstrap 20 --ship-if 'uplift > 0'"
    ),
    "compare-study": "compare --study shop/study.toml --limit 4000 --attribution-window 5d",
    # Checks.
    "check-moving": "check moving/spec.toml",
    "check-bundled": "check --limit 5000",
    "check-promotions": "check promotions --limit 20000",
    "check-users": "check users/spec.toml --cluster-by user",
    **{
        f"check-{log}": f"check {log}/spec.toml"
        for log in (
            "bare",
            "claimed",
            "constant",
            "relabelled",
            "rare",
            "wrong-sets",
            "lost",
            "stray",
            "short",
            "silent",
            "weighted",
            "unfollowed",
            "bursts",
        )
    },
    # Audits.
    "audit-promotions": "audit promotions -p ucb1 -p random --limit 2000 --twins 10 --horizon 100",
    "audit-wrong": "audit wrong/spec.toml -p ucb1 -p thompson --twins 10 --horizon 200",
    "audit-bundled": "audit -p ucb1 --limit 4000 --twins 10 --horizon 100",
    # Delays.
    "delays-moving": "delays moving/spec.toml --bootstraps 19 --families exponential,pareto --jobs 1",
    "delays-bare": "delays bare/spec.toml --by device --bootstraps 19 --families exponential --joint --jobs 1",
    "delays-refunds": "delays users/spec.toml --bootstraps 19 --families exponential --jobs 1",
    "delays-outcomes": "delays promotions --limit 8000 --bootstraps 19 --families exponential --jobs 1",
    "delays-coarse": "delays coarse/spec.toml --bootstraps 19 --families weibull --jobs 1",
    "delays-file": (
        "delays --file shop/delays.csv --delay-column delay_s --by banner --followed followed_s "
        "--families exponential --bootstraps 19 --jobs 1"
    ),
    # Simulations.
    "simulate-linear": "simulate vernade2020-100-100 -p otflinucb --runs 3 --horizon 200 --window none",
}
# Lists and descriptions.
LISTS = {
    "policies-list": "policies list",
    "policies-show": "policies show delayed-klucb",
    "datasets-list": "datasets list",
    "datasets-show": "datasets show promotions",
    "datasets-show-log": "datasets show tidy/spec.toml",
    "datasets-validate": "datasets validate tidy/spec.toml",
    "datasets-convert": (
        "datasets convert broken/spec.toml out/log --on-error quarantine --quarantine-at-most 5% --overwrite"
    ),
    "replay-plan": "replay shop/spec.toml -p otflinucb -w 7d --dry-run",
}
# Refusals.
ERRORS = {
    "error-rows": "datasets validate broken/spec.toml",
    "error-quarantine": "replay broken/spec.toml -p ucb1 --on-error quarantine --quarantine-at-most 0.1%",
    "error-propensities": "replay bare/spec.toml -p linucb",
    "error-window": "replay coarse/spec.toml -p ucb1 -w 1h",
    "error-followed": "replay lost/spec.toml -p ucb1",
    "error-policy": "replay -p ucb2",
    "error-parameter": "replay -p linucb:alpha=-1",
    "error-column": "replay tidy/spec.toml -p ucb1 --by country",
    "error-dataset": "check synthetc",
    "error-option": "replay -p ucb1 --windo 5",
    "error-sampler": "replay -p linucb --sampler queue",
    "error-clusters": "replay short/spec.toml -p ucb1 --cluster-by every:12h --bootstrap 20",
    "error-warm-start": "replay tidy/spec.toml -p linucb -w 1d --warm-start out/nothing.npz",
    "error-weights": "replay weighted/spec.toml -p ucb1 --sampler keep",
    "error-no-delays": "replay silent/spec.toml -p delayed-klucb",
    "error-sets": "replay sets/spec.toml -p qpm-d",
}
READERS = {
    "replay-save": Command("replay tidy/spec.toml -p linucb -w 1d --final last:50% --save-policy out/learned.npz"),
    "replay-warm-start": Command(
        "replay tidy/spec.toml -p linucb -w 1d --delays-from first:50% --warm-start out/learned.npz", parts="json",
        after=("replay-save",),
    ),
    "replay-fitted-delays": Command(
        "replay moving/spec.toml -p delayed-klucb -w 1d --delays out/delays-tidy/fit.json", parts="json",
        after=("delays-tidy",),
    ),
    "report": Command(
        "report out/replay-tidy out/compare-audited out/check-tidy out/audit-tidy -o out/decision.html",
        parts="report", after=("replay-tidy", "compare-audited", "check-tidy", "audit-tidy"),
    ),
}  # fmt: skip
COMMANDS = {
    **{name: Command(line, parts="pages") for name, line in PAGES.items()},
    **{name: Command(line, parts="json") for name, line in (TOLD | LISTS).items()},
    **{name: Command(line) for name, line in ERRORS.items()},
    **READERS,
}
# Their loops are those of no other test, and take seconds each to compile: replayed among the proofs.
LATER = (
    "audit-promotions", "audit-tidy", "audit-wrong", "replay-claimed", "replay-final", "replay-promotions-revenue",
    "replay-quantile", "replay-sets-wall", "replay-short-window", "simulate-linear",
)  # fmt: skip
