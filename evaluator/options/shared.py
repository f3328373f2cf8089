"""Options that several functions share; a function with another default or meaning derives its own declaration."""

from __future__ import annotations

from typing import Literal

from evaluator.options.declaration import Option

REPLAY, ESTIMATE, STUDY, OUTPUT, LOG = "Replay", "Estimates", "Study", "Output", "Log"
# The users' questions, in the order in which `--help` answers them. An option that has none is listed by `--help-all`.
QUESTIONS = (TRIED, WHICH_LOG, DECIDES, INTERVALS, KEPT) = (
    "What is tried", "Which log", "What decides", "How sure it is, and how long it takes", "What is printed and kept"
)  # fmt: skip

ClockName = Literal["traffic", "wall"]
FinalPolicyName = Literal["greedy", "exploring"]
PropensityMode = Literal["column", "uniform", "estimate", "estimate:context"]

WINDOW = Option(
    default=None,
    help="Cut-off of the system: rounds (2000) or a duration (7d). Default: none",
    more="Rounds count the displays that came meanwhile; a duration is the conversion's own delay.",
    question=TRIED,
    flags=("-w",),
    plural="windows",
)
WINDOWS = Option(
    default=None,
    help="Cut-offs, each in rounds, as a duration, or none. Default: none",
    example="500,2000,7d,none",
    question=TRIED,
    flags=("-w",),
    singular="window",
)
LEARN_EVERY = Option(
    default=None,
    help="When what happened reaches the policy: event (at once), 500 (rounds), 1h, or 1d@03:00 (a time of day)",
    more="Displays and events wait for the push, and the policy serves from what it had; a duration without a time of "
    "day counts from the first display. Default: as the log says of its deployment, else event.",
    example="1d@03:00",
    question=TRIED,
    plural="schedules",
)
SCHEDULES = Option(
    default=None,
    help="When what happened reaches each policy: event (at once), 500 (rounds), 1h, 1d@03:00. Default: event",
    more="Each policy that learns is replayed with every one, and compared with itself at `event`.",
    example="event,1h,1d@03:00",
    panel=REPLAY,
    singular="learn_every",
)
LEARN_LAG = Option(
    default=None,
    help="How old the newest of what a push brings is: a duration (6h) or rounds. Default: as the log says, else 0",
    example="6h",
    panel=REPLAY,
)
DEPLOYMENT = Option(
    default=None,
    help="Deployment that a product has by default, as it is documented: growthbook, statsig, eppo or tensorzero",
    more="It takes the place of all that the log says of its deployment, except of what teaches; the options that are "
    "given beside it go before it. `evaluator.options.deployment.PRESETS` has values and sources.",
    example="growthbook",
    panel=REPLAY,
)
LEARN_FROM = Option(
    default=None,
    help="What teaches the policy: objective (rewards, costs at once), revenue, sales, or an outcome such as click, "
    "click@1d (within a day). Default: as the log says of its deployment, else objective",
    more="Value, regret, uplift and guardrails stay those of the rewards. The window holds for what the policy is "
    "told; events have their own delays and follow-up. A comparison takes several, by commas: a variant for each.",
    example="click",
    panel=REPLAY,
)
EXPLORE_FIRST = Option(
    default=None,
    help="How long actions are shown uniformly at random before the policy chooses: rounds (2000) or a duration (2d); "
    "2d:logger for what the logging policy shows. Default: as the log says of its deployment, else 0",
    more="The policy learns from these rounds, and values count them; of policies that learn, by rejection or keep.",
    example="2d",
    panel=REPLAY,
)
KEEP_FOR = Option(
    default=None,
    help="Who keeps the action of the first display: a column, user, or user@7d (asked anew after 7 days). Default: "
    "as the log says of its deployment, else nobody",
    more="Accepted or rejected whole; values count all its displays, and intervals cluster by it. Exact where the "
    "logger kept its action by the same unit, which is checked; others are refused. The log must keep the column.",
    example="user",
    panel=REPLAY,
)
HORIZON = Option(default=None, help="Stop after this many rounds", example="3000", panel=REPLAY, at_least=1)
DELAYS = Option(
    default="log",
    help="Delay CDF for policies that need one: log (fitted to it), a law in rounds (geometric:500, fixed:30, "
    "pareto:0.7...), or a file of evaluate delays: how-late/fit.json",
    more="`evaluator.delays.laws.parse_law` lists the laws. On the wall clock they count, as the window, logged "
    "displays.",
    panel=REPLAY,
)
PROPENSITY = Option(
    default=None,
    help="column, uniform, estimate (frequencies) or estimate:context. Default: the log's own",
    panel=REPLAY,
)
SEED = Option(default=0, help="Seed of all draws", example="7", panel=REPLAY, at_least=0, bits=64)
POLICY = Option(
    default=None,
    help="name[:parameter=value,...], or path/to/mine.py:Class",
    example="otflinucb:alpha=0.1",
    question=TRIED,
    flags=("-p",),
    plural="policies",
)
POLICIES = Option(
    default=(),
    help="name[:parameter=value,...], or path/to/mine.py:Class; once for each, or with commas",
    example="otflinucb:alpha=0.1,ucb1",
    question=TRIED,
    flags=("-p",),
    singular="policy",
)
DATASET = Option(
    default="synthetic",
    help="Bundled name, a spec.toml, or a converted folder, on disk or in a bucket. Default: synthetic",
    example="my/spec.toml",
    panel=LOG,
    flags=("-d",),
)
BY = Option(
    default="action",
    help="Source column whose values are groups, or none. Default: action; of a file, none",
    example="country",
    panel=STUDY,
)
ON_ERROR = Option(
    default="stop",
    help="Bad rows: stop with their numbers, or quarantine them (left out and counted)",
    more="`evaluator.datasets.read` lists them.",
    example="quarantine",
    panel=LOG,
)
QUARANTINE_AT_MOST = Option(
    default="1%",
    help="Largest share of the rows that may be quarantined, else the run stops: 5%",
    more="Of all displays; of those with a conversion, and of the others, where what is left out depends on the "
    "outcome (Fisher's exact test at 0.1 %); and of the conversions that are left out alone.",
    example="5%",
    panel=LOG,
)
JOBS = Option(
    default=1,
    help="Threads; no result depends on it",
    example="2",
    panel=REPLAY,
    question=INTERVALS,
    flags=("-j",),
    at_least=1,
)
BOOTSTRAP = Option(
    default=0,
    help="Resampled logs to replay for an interval of the expected value over logs and seeds",
    flags=("--bootstraps",),
    more="0 for none, else 20 at least.",
    example="200",
    panel=ESTIMATE,
    question=INTERVALS,
    at_least=0,
)
LEVEL = Option(default=0.95, help="Level of the intervals", example="0.9", panel=ESTIMATE, above=0.0, below=1.0)
CLUSTER_BY = Option(
    default=None,
    help="Source column whose displays hang together, such as the user, or every:1d (parts of the clock): expected "
    "and weighted values allow for it. Default: displays are independent",
    more="The log must keep the column (`load`, option `keep`).",
    panel=ESTIMATE,
    question=INTERVALS,
)
CLUSTER = Option(
    default=None,
    help="Workers that compute instead of this process: local:N for N processes here, or the address of the scheduler "
    "of a Dask cluster, which needs the extra `cluster`; no result depends on it",
    example="local:2",
    panel=REPLAY,
)
