"""Coordinates of contexts bear the names of the columns that they were made of, in the columns' own values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaluator import load
from evaluator.checks.coordinates import cut_contexts

SPEC = """
name = "shop"
title = "Made"
licence = "internal"
[source]
files = "log.csv"
[time]
unit = "s"
[display]
time = "shown"
action = "banner"
[conversion]
time = "sold"
[context]
columns = { device = "category", age = "number" }
encoding = "one-hot"
"""


def test_they_bear_the_names_and_values_of_columns(tmp_path: Path) -> None:
    rows = [f"{i},{'ab'[i % 2]},,{('phone', 'desktop', '')[i % 3]},{20 + i % 2}" for i in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(["shown,banner,sold,device,age", *rows]) + "\n", encoding="utf-8")
    (tmp_path / "spec.toml").write_text(SPEC, encoding="utf-8")
    log = load(tmp_path / "spec.toml")
    cut = cut_contexts(log)
    bins = {cut.name(j): [cut.bin_name(j, b) for b in range(len(cut.edges[j]) + 1)] for j in range(len(cut))}
    assert bins == {
        "device = desktop": ["not device = desktop", "device = desktop"],
        "device = missing": ["not device = missing", "device = missing"],
        "device = phone": ["not device = phone", "device = phone"],
        "age": ["age < 21", "age >= 21"],
    }
    nameless = cut_contexts(replace(log, meta=replace(log.meta, encoder=None)))
    assert [nameless.name(j) for j in range(len(nameless))] == [f"context[{j}]" for j in range(4)]
    hashed = cut_contexts(load(tmp_path / "spec.toml", features="device:hash=2"))
    assert {hashed.name(j) for j in range(len(hashed))} <= {"hash 0 of device", "hash 1 of device"}
