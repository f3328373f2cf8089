"""Small logs in CSV with a spec each, tidy and untidy, for commands whose results are frozen."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DAY, HOUR = 86_400, 3_600
# A Monday.
BEGIN = 1_772_409_600


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a log is drawn from. The default is tidy.

    Parameters
    ----------
    displays, days
        Of the log.
    rates, shares
        Conversion rate of each action, and the probability with which it is shown.
    propensity
        What the log claims: logged, uniform, absent, constant (`shares`, whatever tilted them), or wrong (those of the
        actions in reverse order).
    tilt_by_hour, tilt_by_age
        How far the logger prefers the last action in the afternoon, and for the old.
    delay_h, slowness
        Mean delay of a conversion, and each action's factor.
    drift, delays_drift, values_drift
        Factor by which rates, delays and values have changed at the end.
    attribution_d, until
        Attribution window in days, and whether the log says that it looked until its last display; None, False: unsaid.
    launch
        Share of the time from which the last action is shown.
    sets
        On every other day the last action is not eligible, and the log says so: right, or wrong where propensities
        are those of all actions; empty for none.
    heavy, refunds, cents
        Values with heavy tails; share of the sales that come back; values of the second half are in cents.
    exchanged
        The labels of two actions are exchanged in the second half.
    users
        Number of users who come again, each with a rate of his own; 0 for none.
    wear_out
        Factor of a user's rate after his first display.
    copies, near, shared
        Shares of the displays that are there twice, alike or a second later; of the conversions, on two displays.
    gap_h, outage_h, stray_d
        Hours without displays and conversions, and without conversions alone; days after which one conversion strays.
    bursts
        Displays come in so many bursts; 0 for evenly.
    stamp_s, sorted_ties
        Times are rounded down to it; displays of one time are in the order of their actions.
    large_unit
        The age is counted in millionths of a year.
    robots
        Share of displays to a robot, which is shown one action and never buys.
    cut_last, unfollowed_d
        Half of the displays of the last day are missing; conversions of so many last days.
    thinned
        Of the displays without a conversion half are left out, and the others have a weight of 2.
    bad_rows
        So many rows with a conversion break a rule each.
    """

    displays: int = 4_000
    days: float = 10.0
    rates: tuple[float, ...] = (0.2, 0.3, 0.4)
    shares: tuple[float, ...] = (0.5, 0.3, 0.2)
    propensity: str = "logged"
    tilt_by_hour: float = 0.0
    tilt_by_age: float = 0.0
    delay_h: float = 8.0
    slowness: tuple[float, ...] = (1.0, 1.0, 1.0)
    drift: float = 1.0
    delays_drift: float = 1.0
    values_drift: float = 1.0
    attribution_d: int | None = 2
    until: bool = True
    launch: float = 0.0
    sets: str = ""
    heavy: bool = False
    cents: bool = False
    exchanged: bool = False
    refunds: float = 0.0
    users: int = 0
    wear_out: float = 1.0
    copies: float = 0.0
    near: float = 0.0
    shared: float = 0.0
    gap_h: float = 0.0
    outage_h: float = 0.0
    stray_d: float = 0.0
    bursts: int = 0
    stamp_s: int = 1
    sorted_ties: bool = False
    large_unit: bool = False
    robots: float = 0.0
    cut_last: bool = False
    unfollowed_d: float = 0.0
    thinned: bool = False
    bad_rows: int = 0


LOGS = {
    "tidy": Shape(),
    "bare": Shape(propensity="absent", attribution_d=None, until=False, delay_h=30),
    "claimed": Shape(propensity="uniform", shares=(0.45, 0.35, 0.2), tilt_by_hour=0.6, sorted_ties=True, stamp_s=HOUR),
    "constant": Shape(propensity="constant", tilt_by_age=0.8, tilt_by_hour=0.4, launch=0.3, cut_last=True),
    "wrong": Shape(rates=(0.05, 0.3, 0.6), propensity="wrong", tilt_by_age=0.8, copies=0.02, near=0.02, shared=0.1),
    "moving": Shape(drift=0.4, delays_drift=3, values_drift=2, slowness=(0.3, 1, 3), launch=0.6, heavy=True),
    "relabelled": Shape(exchanged=True, cents=True, robots=0.2, rates=(0.1, 0.5, 0.1)),
    "rare": Shape(shares=(0.7, 0.297, 0.003), rates=(0.02, 0.02, 0.02), slowness=(1, 1, 1), delay_h=30),
    "sets": Shape(sets="right", delay_h=20),
    "wrong-sets": Shape(sets="wrong"),
    "lost": Shape(displays=8_000, gap_h=10, outage_h=14, attribution_d=20, until=False, large_unit=True),
    "stray": Shape(stray_d=5, attribution_d=None, until=False, displays=2_000),
    "users": Shape(users=1_200, wear_out=0.1, days=20, refunds=0.3, delay_h=3),
    "bursts": Shape(bursts=20, delay_h=1, attribution_d=1),
    "coarse": Shape(stamp_s=DAY, days=30, delay_h=60, attribution_d=6),
    "weighted": Shape(thinned=True),
    "short": Shape(displays=150, days=3, delay_h=20, attribution_d=1),
    "broken": Shape(displays=800, bad_rows=10),
    "silent": Shape(displays=1_000, rates=(0, 0, 0)),
    "unfollowed": Shape(unfollowed_d=2, until=False, attribution_d=3, delay_h=16),
}  # fmt: skip


def write_log(name: str, folder: Path) -> None:
    """Write displays, conversions and spec of a log of `LOGS` to a new folder."""
    shape = LOGS[name]
    folder.mkdir()
    rng = np.random.default_rng(sorted(LOGS).index(name))
    n, k = shape.displays, len(shape.rates)
    seconds = shape.days * DAY
    share = np.sort(rng.random(n))
    if shape.bursts:
        share = (np.floor(share * shape.bursts) + 0.02 * (share * shape.bursts % 1)) / shape.bursts
    time = (BEGIN + share * seconds).astype(np.int64)
    age, phone = 18 + 60 * rng.random(n), rng.random(n) < 0.6
    user = (shape.users * rng.random(n) ** 2).astype(np.int64)
    chance = _chances(shape, share, time, age)
    robot = rng.random(n) < shape.robots
    chance[robot] = np.eye(k)[0]
    age[robot], phone[robot] = 99, True
    action = (rng.random(n)[:, None] > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1)
    rate = np.array(shape.rates)[action] * (1 + (shape.drift - 1) * share) * np.where(phone, 1.2, 0.8)
    if shape.users:
        again = np.ones(n, bool)
        again[np.unique(user, return_index=True)[1]] = False
        rate = (np.modf(user * 0.618)[0] < rate) * np.where(again, shape.wear_out, 1.0)
    of = np.flatnonzero(rng.random(n) < rate * ~robot)
    delay = -np.log(1 - rng.random(len(of))) * shape.delay_h * HOUR * np.array(shape.slowness)[action[of]]
    delay *= 1 + (shape.delays_drift - 1) * share[of]
    when = time[of] + delay.astype(np.int64)
    value = np.round((1 + 4 * rng.random(len(of))) * (1 + (shape.values_drift - 1) * share[of]), 2)
    if shape.heavy:
        value = np.round(value * (1 - rng.random(len(of))) ** -1.2, 2)
    value = np.where(shape.cents & (share[of] > 0.5), 100 * value, value)
    kept = when <= BEGIN + seconds - shape.unfollowed_d * DAY
    if shape.attribution_d is not None:
        kept &= when - time[of] <= shape.attribution_d * DAY
    middle = BEGIN + seconds / 2
    kept &= ~((when > middle) & (when < middle + (shape.outage_h + shape.gap_h) * HOUR))
    of, when, value = of[kept], when[kept], value[kept]
    p = chance[np.arange(n), action]
    if shape.propensity == "wrong":
        p = chance[:, ::-1][np.arange(n), action]
    if shape.propensity == "constant" or shape.sets == "wrong":
        p = np.array(shape.shares)[action]
    here = ~((time > middle) & (time < middle + shape.gap_h * HOUR))
    if shape.cut_last:
        here &= (time < BEGIN + seconds - DAY) | (np.arange(n) % 2 == 0)
    if shape.thinned:
        here &= np.isin(np.arange(n), of) | (np.arange(n) % 2 == 0)
    if shape.stray_d:
        of, when, value = np.append(of, n - 1), np.append(when, time[-1] + shape.stray_d * DAY), np.append(value, 3.0)
    sold = np.isin(np.arange(n), of)
    label = np.where(shape.exchanged & (share > 0.5) & (action > 0), k - action, action)
    rows = [
        [f"d{i}", time[i], f"banner-{label[i]}", f"{p[i]:.6f}", f"{age[i] * (1e6 if shape.large_unit else 1):.1f}",
         "phone" if phone[i] else "desk", "" if shape.users and i % 97 == 0 else f"u{user[i]}",
         1 if sold[i] else 2, json.dumps([f"banner-{a}" for a in range(k) if chance[i, a] > 0])]
        for i in np.flatnonzero(here)
    ]  # fmt: skip
    sales = [[f"d{i}", t, v] for i, t, v in zip(of, when, value, strict=True) if here[i]]
    shown = dict(zip((row[0] for row in rows), (row[1] for row in rows), strict=True))
    back = [[d, t + DAY, -v] for d, t, v in sales[:: round(1 / (shape.refunds or 1))] if t - shown[d] < DAY // 2]
    back = [sale for sale in back if shape.refunds and sale[1] <= time[-1]]
    rows, sales = _damaged(shape, rows, [*sales, *back])
    _write(
        folder / "displays.csv", ["id", "shown_at", "banner", "p", "age", "device", "user", "weight", "eligible"], rows
    )
    _write(folder / "sales.csv", ["display", "sold_at", "revenue"], sales)
    (folder / "spec.toml").write_text(_spec(name, shape), encoding="utf-8")


def _chances(shape: Shape, share: Floats, time: Ints, age: Floats) -> Floats:
    """Return the probability of each action at each display, shape (n, K)."""
    k = len(shape.shares)
    lean = shape.tilt_by_hour * np.sin(2 * np.pi * (time % DAY) / DAY) + shape.tilt_by_age * (age - 48) / 30
    chance = np.array(shape.shares) * np.exp(np.outer(lean, np.linspace(-1, 1, k)))
    chance[share < shape.launch, -1] = 0
    if shape.sets:
        chance[time // DAY % 2 == 1, -1] = 0
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def _damaged(shape: Shape, rows: list[list[object]], sales: list[list[object]]) -> tuple[list[list[object]], ...]:
    """Return the rows of both tables with copies, coarse stamps and broken rules."""
    for part, later in ((shape.copies, 0), (shape.near, 1)):
        if part:
            more = [[f"{row[0]}-{later}", int(str(row[1])) + later, *row[2:]] for row in rows[:: round(1 / part)]]
            rows = sorted([*rows, *more], key=lambda row: int(str(row[1])))
    if shape.shared:
        sold = {row[0] for row in sales}
        free = [row[0] for row in rows if row[0] not in sold]
        at = {row[0]: int(str(row[1])) for row in rows}
        some = sales[:: round(1 / shape.shared)]
        pairs = zip(free, some, strict=False)
        sales += [[d, *sale[1:]] for d, sale in pairs if 0 <= int(str(sale[1])) - at[d] <= 2 * DAY]
    if shape.stamp_s > 1:
        for table in (rows, sales):
            for row in table:
                row[1] = int(str(row[1])) // shape.stamp_s * shape.stamp_s
    if shape.sorted_ties:
        rows.sort(key=lambda row: (int(str(row[1])), str(row[2])))
    sold_rows = [row for row in rows if row[0] in {sale[0] for sale in sales}] if shape.bad_rows else []
    for i, row in enumerate(sold_rows[:: max(len(sold_rows) // max(shape.bad_rows, 1), 1)][: shape.bad_rows]):
        row[(3, 3, 1, 2, 3)[i % 5]] = ("1.7", "half", "yesterday", "", "0")[i % 5]
    return rows, sales


def _write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _spec(name: str, shape: Shape) -> str:
    lines = [
        f'name = "{name}"', f'title = "A small log, {name}"', 'licence = "none"',
        'notes = ["made for snapshots, at an interval of five minutes"]',
        "[source]", 'files = "displays.csv"', "[time]", 'unit = "s"',
        'ties = "file"' if shape.sorted_ties else "", "[display]", 'id = "id"', 'time = "shown_at"',
        'action = "banner"',
        "" if shape.propensity in ("uniform", "absent") else 'propensity = "p"',
        'eligible = "eligible"' if shape.sets else "", 'weight = "weight"' if shape.thinned else "",
        'propensity_kind = "uniform"' if shape.propensity == "uniform" else "",
        "[conversion]", 'time = "sold_at"', 'value = "revenue"',
        "[conversion.source]", 'files = "sales.csv"', 'display = "display"',
        "[context]", 'columns = { age = "number", device = "category" }',
        "[keep]", 'device = "device"', 'user = "user"', "[log]",
        "" if shape.attribution_d is None else f'attribution_window = "{shape.attribution_d}d"',
        'observed_until = "end"' if shape.until else "",
    ]  # fmt: skip
    return "\n".join(line for line in lines if line) + "\n"
