"""``evaluate delays``: terminal, JSON, folder and page; bare files of delays; what a replay makes of its fits."""

from __future__ import annotations

import csv
import errno
import html
import io
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import vl_convert

from evaluator.reading.canonical import write_canonical
from tests.cli.runs import evaluate, manifest_of, sentences
from tests.logs import bernoulli_log, build_log

QUICK = ("--families", "geometric,lognormal", "--bootstraps", "19")
SHORT = ("--limit", "3000", *QUICK)
HOUR, DAY = 3600, 86_400


def delay_file(path: Path, rows: list[tuple[object, ...]], head: str = "arm,delay_s") -> Path:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw in this process, which is warm after its first picture; `test_pictures` is about the one that draws."""
    monkeypatch.setattr(
        "evaluator.reports.result_files.pictures",
        lambda charts: {name: vl_convert.vegalite_to_png(chart, scale=2) for name, chart in charts.items()},
    )


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A converted log of 40 days, its actions named as an attacker would, that stops looking at its end."""
    rng = np.random.default_rng(0)
    n = 4000
    time = np.sort(rng.integers(0, 40 * DAY, n))
    delay = rng.exponential(4 * DAY, n).astype(np.int64)
    of = np.flatnonzero((rng.random(n) < 0.4) & (time + delay <= 40 * DAY) & (delay <= 30 * DAY))
    log = build_log(
        time=time, action=rng.integers(0, 3, n), conversion_display=of, conversion_time=(time + delay)[of],
        n_actions=3, tick="s", name="shop", observed_until=40 * DAY, attribution_window=30 * DAY,
    )  # fmt: skip
    labels = log.actions.set_column(1, "label", [["</script><img src=x>", "[red]b[/red]", "c&d"]])
    object.__setattr__(log, "actions", labels)
    folder = tmp_path / "shop-log"
    folder.mkdir()
    write_canonical(log, folder)
    return folder


def test_the_terminal_says_what_the_log_can_see(shop: Path) -> None:
    run = evaluate("delays", str(shop), *QUICK, "--windows", "1h,7d,30d,60d,500", "--full")
    assert run.code == 0, run.err
    assert "conditional on delay <= 30 d" in run.out
    assert "later than 30 d is unknown" in run.out
    assert re.search(r"7 d +70\d +\d\d\.\d% +\[\d\d\.\d%, \d\d\.\d%\]", run.out), run.out
    assert re.search(r"60 d +\d,\d{3} +unknown", run.out)
    assert re.search(r"recommended: [\d.]+ d = \d,?\d* rounds", run.out)
    for title in ("What the log can see", "How late", "Law", "Windows", "By action", "Tail", "Drift by day"):
        assert f"\n{title}\n" in run.out
    # Labels are shown as they are, never read as markup.
    assert "[red]b[/red]" in run.out
    assert "</script><img src=x>" in run.out


def test_a_narrow_terminal_is_enough(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator import load, study_delays
    from evaluator.reports.console import ReportConsole
    from evaluator.reports.documents import show

    study = study_delays(load(str(shop)), families=["geometric"], bootstraps=19)
    for terminal in (False, True):
        console = ReportConsole(width=60, record=True, force_terminal=terminal, file=io.StringIO())
        show(console, study)
        lines = console.export_text().splitlines()
        assert max(map(len, lines)) <= 60
        assert not {c for line in lines for c in line if c == "…"}


def test_plain_output_is_ascii_but_for_nothing(shop: Path) -> None:
    assert evaluate("delays", str(shop), *QUICK, "--by", "none").out.isascii()


def test_the_conversion_rate_on_context(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n = 4000
    x = rng.standard_normal((n, 2))
    time = np.sort(rng.integers(0, 40 * DAY, n))
    delay = rng.exponential(4 * DAY * np.exp(0.5 * x[:, 0])).astype(np.int64)
    of = np.flatnonzero((rng.random(n) < 1 / (1 + np.exp(-x[:, 1]))) & (time + delay <= 40 * DAY) & (delay <= 30 * DAY))
    log = build_log(
        time=time, action=rng.integers(0, 2, n), conversion_display=of, conversion_time=(time + delay)[of], n_actions=2,
        context=x, tick="s", name="shop", observed_until=40 * DAY, attribution_window=30 * DAY,
    )  # fmt: skip
    shop = tmp_path / "shop"
    shop.mkdir()
    write_canonical(log, shop)
    run = evaluate("delays", str(shop), *QUICK, "--joint", "--full", "--out", str(tmp_path / "out"))
    assert run.code == 0, run.err
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for said in ("corrected on context", "Does the model on context hold?", "nothing speaks against the model ("):
        assert said in page
    assert {file.stem for file in (tmp_path / "out").glob("*.png")} >= {"rates", "calibration"}
    assert run.out.isascii()
    assert "\nConversion rate on context\n" in run.out
    assert "conversions within the attribution window of 30 d" in run.out
    found = evaluate("delays", str(shop), *QUICK, "--joint", "--json").json["joint"]
    for name, label in (("rate", "all"), ("immature", "immature")):
        of_it = found[name]
        shown = rf"{of_it['naive']:.3%} +{of_it['corrected']:.3%} +"
        shown += rf"\[{of_it['low']:.3%}, {of_it['high']:.3%}\]"
        assert re.search(rf"{label} +{of_it['displays']:,} +{shown}", run.out), run.out
    assert re.search(r"mean delay at the average context: [\d.]+ d *\n", run.out)
    assert "Conversion rate on context" not in evaluate("delays", str(shop), *QUICK, "--full").out
    # A log that follows every display to its end has nothing left to correct.
    ended = tmp_path / "ended"
    ended.mkdir()
    write_canonical(log.with_meta(observed_until=None), ended)
    refused = evaluate("delays", str(ended), *QUICK, "--joint")
    assert (refused.code, refused.out) == (2, "")
    assert "follows every display to its end" in refused.err


def test_json_has_every_number_of_the_terminal(shop: Path) -> None:
    run = evaluate("delays", "-d", str(shop), *QUICK, "--windows", "1h,2000", "--level", "0.9", "--seed", "3", "--json")
    found = run.json
    assert found["schema"] == "evaluate.delays/1"
    assert found["options"]["seed"] == 3
    assert found["fit"]["confidence"] == 0.9
    assert [window["text"] for window in found["windows"]] == ["1h", "2000"]
    assert found["windows"][0]["ticks"] == HOUR
    assert {fit["family"] for fit in found["laws"]["comparison"]["fits"]} == {"geometric", "lognormal"}
    assert len(found["groups"]) == 3
    assert found["drift"]["changed"] in (True, False)
    assert found["period"] == "day"
    again = evaluate(
        "delays", "-d", str(shop), *QUICK, "--windows", "1h,2000", "--level", "0.9", "--seed", "3", "--json"
    )
    assert again.out == run.out


def test_the_folder_holds_fits_tables_charts_and_a_page(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "how-late"
    run = evaluate("delays", str(shop), *QUICK, "--out", str(out), "--json")
    assert run.code == 0, run.err
    assert sorted(file.name for file in out.iterdir()) == [
        "cdf.parquet", "cdf.png", "chapter.json", "density.png", "fit.json", "groups.parquet", "groups.png", "law.json",
        "manifest.json", "rates.png", "report.html", "report.txt", "result.json",
    ]  # fmt: skip
    assert json.loads((out / "result.json").read_text()) == run.json
    cdf = pq.read_table(out / "cdf.parquet")
    assert cdf.column_names == ["delay", "cdf", "naive", "low", "high", "band_low", "band_high"]
    low, mid, high = (cdf[name].to_numpy() for name in ("low", "cdf", "high"))
    assert ((low <= mid) & (mid <= high)).all()
    assert sorted(set(pq.read_table(out / "groups.parquet")["group"].to_pylist())) == sorted(
        ["</script><img src=x>", "[red]b[/red]", "c&d"]
    )
    manifest = manifest_of(out)
    assert manifest["source"]["dataset"] == "shop"
    assert {"altair", "vl-convert-python", "numpy"} <= set(manifest["versions"])
    for name in ("cdf", "density", "groups", "rates"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "</script><img src=x>" not in page
    assert html.escape("</script><img src=x>") in page
    charts = json.loads((out / "chapter.json").read_text())["charts"]
    assert set(charts) == {"arrival", "change", "cdf", "density", "groups", "rates"}
    assert "</script><img src=x>" in json.dumps(charts)
    assert page.count("<figure") == 6


def test_the_folder_is_there_whole_or_not_at_all(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator.reports import result_files

    def fails(*_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "how-late"
    with monkeypatch.context() as patched:
        patched.setattr(result_files, "page_of", fails)
        run = evaluate("delays", str(shop), *QUICK, "--out", str(out))
    assert run.code == 1
    assert "cannot be written (No space left on device)" in run.err
    # What was computed is there for the next run.
    assert [file.name for file in tmp_path.iterdir() if "how-late" in file.name] == ["how-late.partial"]
    run = evaluate("delays", str(shop), *QUICK, "--out", str(out))
    assert run.code == 0, run.err
    assert f"Took up what was finished before, from {out}.partial." in run.err
    assert [file.name for file in tmp_path.iterdir() if "how-late" in file.name] == ["how-late"]
    shutil.rmtree(out)
    out.mkdir()
    refused = evaluate("delays", str(shop), *QUICK, "--out", str(out))
    assert refused.code == 2
    assert refused.out == ""


def test_a_replay_takes_the_fits_on_its_clock(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "how-late"
    assert evaluate("delays", str(shop), *QUICK, "--out", str(out)).code == 0
    words = ("replay", "-d", str(shop), "-p", "delayed-klucb", "-w", "10d", "--json")
    own = evaluate(*words).json
    for name, said in (("fit.json", "product limit"), ("law.json", "law fitted to")):
        run = evaluate(*words, "--delays", str(out / name))
        assert run.code == 0, run.err
        assert said in run.json["plan"]["policy_delays"]
        assert any(f"the delay CDF of {out / name}" in line for line in sentences(run.json))
    assert own["plan"]["policy_delays"] is not None
    # The same law in displays: F of 10 days and of the displays of 10 days, 4,000 / 40 * 10 = 1,000.
    from evaluator import load
    from evaluator.api import plan

    log = load(str(shop))
    rate = (4000 - 1) / (log.column("time")[-1] - log.column("time")[0])
    by_file = plan(log, "delayed-klucb", delays=str(out / "fit.json")).setting.delay_cdf
    slow = plan(log, "delayed-klucb", delays=str(out / "fit.json"), traffic_share=0.1).setting.delay_cdf
    assert by_file is not None
    assert slow is not None
    fit = json.loads((out / "fit.json").read_text())["steps"]
    # The replay uses the displays followed for 30 days, the first 1,000 or so: its CDF reaches as far, ten days.
    for days in (1, 5, 9):
        early, truth, late = np.interp(days * DAY + np.array([-10, 0, 10]) / rate, fit["delays"], fit["cdf"])
        # Ten rounds more or less, since 0.1 of the traffic counts in tens, and 1/256 for the coarser steps.
        slack = 1 / 256 + max(truth - early, late - truth)
        assert abs(by_file(days * DAY * rate) - truth) < slack
        assert abs(slow(days * DAY * rate * 0.1) - truth) < slack


def test_files_that_are_no_fits_are_refused(tmp_path: Path, shop: Path) -> None:
    words = ("replay", "-p", "delayed-klucb", "--limit", "2000", "--delays")
    missing = evaluate(*words, str(tmp_path / "none.json"))
    assert missing.code == 3
    assert "cannot be read" in missing.err
    other = tmp_path / "other.json"
    other.write_text('{"schema": "evaluate.replay/2"}')
    refused = evaluate(*words, str(other))
    assert refused.code == 3
    assert "has schema 'evaluate.replay/2'" in refused.err
    assert evaluate("delays", str(shop), *QUICK, "--out", str(tmp_path / "out")).code == 0
    seconds = evaluate(*words, str(tmp_path / "out" / "fit.json"))
    assert seconds.code == 2
    assert "counts in units of 1 s, this log in round" in seconds.err


def test_delays_from_on_the_command_line() -> None:
    words = ("compare", "-p", "delayed-klucb,ucb1", "-b", "ucb1", "-w", "200", "--limit", "4000", "--json")
    run = evaluate(*words, "--delays-from", "first:20%", "--bootstrap", "0")
    assert run.code == 0, run.err
    assert [v["plan"]["displays_before"] for v in run.json["variants"]] == [800, 800]
    assert evaluate(*words, "--delays-from", "a fifth").code == 2


def test_a_bare_file_of_delays(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [(arm, int(d)) for arm, scale in (("fast", HOUR), ("slow", DAY)) for d in rng.exponential(scale, 300)]
    file = delay_file(tmp_path / "delays.csv", rows)
    words = ("delays", "--file", str(file), "--by", "arm", *QUICK)
    run = evaluate(*words, "--json")  # the only other column holds the delays
    assert run.code == 0, run.err
    assert run.json["conversions"] == 600
    assert run.json["tick"] == "s"
    assert [group["label"] for group in run.json["groups"]] == ["fast", "slow"]
    assert run.json["heterogeneity"]["p"] == 0.001
    assert run.json["drift"] is None
    assert (
        "rounds"
        not in evaluate(*words, "--full", "--windows", "1h").out.split("Windows")[1].split("recommended")[1][:40]
    )
    assert "no delay was cut off" in run.json["sight"][0]
    cut = evaluate(*words, "--followed", "30d", "--delay-column", "delay_s", "--json")
    assert "followed for 30 d" in cut.json["sight"][0]
    assert "no change" not in evaluate(*words).out


def test_a_file_may_say_how_long_each_display_was_followed(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    delay, limit = rng.exponential(100, 8000).astype(int), rng.integers(1, 600, 8000)
    rows = list(zip(delay[delay <= limit].tolist(), limit[delay <= limit].tolist(), strict=True))
    file = delay_file(tmp_path / "d.csv", rows, "delay,watched")
    run = evaluate("delays", "--file", str(file), "--delay-column", "delay", "--followed", "watched", "--unit", "round",
                   "--windows", "69", *QUICK, "--json")  # fmt: skip
    assert run.code == 0, run.err
    share = run.json["windows"][0]["share"]
    truth = (1 - np.exp(-70 / 100)) / (1 - np.exp(-600 / 100))
    assert abs(share["tau"] - truth) < 4 * (share["high"] - share["low"]) / (2 * 1.959964)
    assert np.mean([d <= 69 for d, _ in rows]) > share["high"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", 5), ("b", -1)], "line 3: '-1'"),
        ([("a", 5), ("b", "soon")], "line 3: 'soon'"),
        ([("a", ""), ("b", 2)], "line 2"),
        ([("a", 5), ("b", 200)], "longer than its display was followed"),
    ],
)
def test_bad_rows_stop_with_their_lines_or_go_to_quarantine(
    tmp_path: Path, rows: list[tuple[object, ...]], said: str
) -> None:
    file = delay_file(tmp_path / "delays.csv", [*rows, *(("a", i) for i in range(40))])
    words = ("delays", "--file", str(file), "--delay-column", "delay_s", "--followed", "100", *QUICK)
    stopped = evaluate(*words)
    assert stopped.code == 3
    assert said in stopped.err
    assert stopped.out == ""
    many = evaluate(*words, "--on-error", "quarantine")
    assert (many.code, many.out) == (3, "")
    assert "1 of 42 rows (2.38 %) break a rule, and 1 % may be left out" in many.err
    assert "--quarantine-at-most 3% allows the loss" in many.err
    words += ("--quarantine-at-most", "3%")
    assert evaluate(*words).code == 2
    run = evaluate(*words, "--on-error", "quarantine", "--out", str(tmp_path / "out"), "--json")
    assert run.code == 0, run.err
    assert "1 bad rows were left out" in run.err
    assert run.json["conversions"] == 41
    assert "1 rows broke a rule and were left out" in " ".join(run.json["sight"])
    assert pq.read_table(tmp_path / "out" / "quarantine.parquet").num_rows == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--file", "{file}"), 2, "--delay-column"),
        (("--file", "{file}", "--delay-column", "delay"), 3, "no column 'delay'"),
        (("--file", "{file}", "--delay-column", "delay_s", "--by", "delay_s"), 2, "column of the delays"),
        (("--file", "{file}", "--delay-column", "delay_s", "--unit", "week"), 2, "no unit of time"),
        (("--file", "{file}", "--delay-column", "delay_s", "--followed", "long"), 2, "neither a time nor a column"),
        (("--file", "{file}", "--delay-column", "delay_s", "--windows", "2000"), 2, "traffic rate is unknown"),
        (("--file", "{file}", "--limit", "5"), 2, "--limit does not go with --file"),
        (("--file", "{file}", "-d", "synthetic"), 2, "--dataset does not go with --file"),
        (("--file", "none.csv", "--delay-column", "delay_s"), 3, "No file matches"),
        (("--file", "{file}", "--delay-column", "delay_s", "--joint"), 2, "--joint does not go with --file"),
        (("--followed", "30d"), 2, "--followed goes with --file"),
        (("--limit", "900", "--joint"), 2, "has no contexts"),
        (("synthetic", "-d", "synthetic"), 2, "name two logs"),
        (("",), 2, "No dataset ''"),
        (("--limit", "900", "--windows", "7d"), 2, "counts rounds"),
        (("--limit", "900", "--families", "weibul"), 2, "did you mean weibull"),
        (("--limit", "900", "--by", "country"), 2, "keeps no column 'country'"),
        (("--limit", "900", "--by", "context"), 2, "keeps no column 'context'"),
    ],
)
def test_words_that_do_not_fit(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    file = delay_file(tmp_path / "delays.csv", [("a", i) for i in range(60)])
    run = evaluate("delays", *(word.replace("{file}", str(file)) for word in words))
    assert (run.code, run.out) == (code, "")
    assert said in run.err


def test_real_delays_of_ten_products(shared_data: Path) -> None:
    file = shared_data / "criteo_search_delays.csv"
    words = ("delays", "--file", str(file), "--by", "arm", "--followed", "30d")
    stopped = evaluate(*words)
    assert stopped.code == 3
    with file.open() as stream:
        bad = [i for i, row in enumerate(csv.reader(stream), start=1) if row[1] == "-1"]
    assert len(bad) == 16
    for line in bad[:3]:
        assert f"line {line}: '-1'" in stopped.err
    assert "and 13 more" in stopped.err
    families = "exponential,lognormal,lognormal-mixture-3"
    run = evaluate(*words, "--on-error", "quarantine", "--families", families, "--bootstraps", "19", "--json")
    assert run.json["conversions"] == 5449 - 16
    assert run.json["heterogeneity"]["p"] == 0.001
    assert run.json["heterogeneity"]["groups_differing"] >= 2
    fits = run.json["laws"]["comparison"]["fits"]
    assert fits[0]["family"] == "lognormal-mixture-3"
    assert fits[-1]["family"] == "exponential"
    assert fits[-1]["aic"] - fits[0]["aic"] > 1000


@pytest.mark.parametrize("delays", [[0] * 60, [1] * 60, [0, 1] * 30, [7]])
def test_pictures_of_hardly_any_delays(tmp_path: Path, delays: list[int]) -> None:
    file = delay_file(tmp_path / "delays.csv", [("a", delay) for delay in delays])
    out = tmp_path / "out"
    run = evaluate("delays", "--file", str(file), "--delay-column", "delay_s", "--by", "arm", *QUICK, "--out", str(out))
    assert run.code == 0, run.err
    assert len(list(out.glob("*.png"))) == (3 if any(delays) else 0)
    assert ("all delays are 0" in run.out) == (not any(delays))


def test_no_mark_of_the_log_is_needed(tmp_path: Path) -> None:
    write_canonical(bernoulli_log(300, [0.5, 0.5], mean_delay=5, seed=0), tmp_path)
    assert evaluate("delays", str(tmp_path), *QUICK).code == 0
    run = evaluate("delays", *SHORT)
    assert run.code == 0
    assert "bundled synthetic log" in run.err


def test_a_law_that_there_is_not_is_told_before_any_is_fitted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = evaluate("delays", "--limit", "3000", "--families", "lognormal,weibul", "--out", str(out))
    assert (run.code, run.out) == (2, "")
    assert "did you mean weibull" in run.err
    assert list(tmp_path.iterdir()) == []
