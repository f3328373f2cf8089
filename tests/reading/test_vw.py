"""Logs of VowpalWabbit: dsjson and text, as decisions with the actions that could have been chosen."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import datasets, load
from evaluator.errors import LogError, SourceError
from evaluator.log import Log
from evaluator.log.eligible import unpack
from evaluator.reading.vw.dsjson import dsjson_units
from tests.reading.decisions import DRINKS, as_text, events, written


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return load(written(tmp_path_factory.mktemp("vw"), [json.dumps(one) for one in events()]))


def test_a_log_has_what_the_lines_say(log: Log) -> None:
    found = events()
    assert list(log.labels) == sorted(DRINKS)
    chosen = [one["c"]["_multi"][one["_labelIndex"]]["_tag"] for one in found]
    assert [log.labels[a] for a in log.column("action")] == chosen
    p = [one["p"][0] / sum(one["p"]) for one in found]
    np.testing.assert_allclose(log.column("propensity"), p, rtol=1e-12)
    eligible = [{action["_tag"] for action in one["c"]["_multi"]} for one in found]
    truths = unpack(log.displays["eligible"], log.n_actions)
    assert [{log.labels[k] for k in np.flatnonzero(row)} for row in truths] == eligible
    rewards = {i: -one["_label_cost"] for i, one in enumerate(found) if one["_label_cost"]}
    events_of = log.conversions.to_pydict()
    assert dict(zip(events_of["display_id"], events_of["value"], strict=True)) == rewards
    assert (np.diff(log.column("time")) == 1_000_000).all()
    assert log.meta.reward_min is None
    assert log.validated()


def slot(token: str, width: int) -> tuple[int, int]:
    code = zlib.crc32(f"{token}=".encode())
    return (code & 0x7FFFFFFF) % width, -1 if code >> 31 else 1


def test_vectors_are_hashed_features_and_their_products(log: Log) -> None:
    one = events()[5]
    want = {}
    for action in one["c"]["_multi"]:
        vector = np.zeros(16)
        own = {f"i.id={action['_tag']}": 1.0, "i.cups=": DRINKS.index(action["_tag"]) / 4}
        shared = {"Sky.hot=": 1.0, "Sky.name=rain": 1.0}
        tokens = {**own, **{f"{s}×{a}": x * y for s, x in shared.items() for a, y in own.items()}}
        for token, value in tokens.items():
            where, sign = slot(token, 16)
            vector[where] += sign * value
        want[action["_tag"]] = vector / np.linalg.norm(vector)
    (row,) = log.displays["action_set"][5:6].to_pylist()
    found = np.array(row, np.float32).reshape(-1, 16)
    tags = [log.labels[k] for k in np.flatnonzero(unpack(log.displays["eligible"], log.n_actions)[5])]
    np.testing.assert_allclose(found, np.array([want[tag] for tag in tags]), atol=1e-6)


def test_text_and_dsjson_of_the_same_decisions_are_one_log(tmp_path: Path, log: Log) -> None:
    text = load(written(tmp_path, as_text(events()), kind="text"))
    assert text.labels == log.labels
    for column in ("action", "propensity", "eligible"):
        assert text.displays[column].to_pylist() == log.displays[column].to_pylist(), column
    for column in ("display_id", "value"):
        assert text.conversions[column].to_pylist() == log.conversions[column].to_pylist()
    assert text.column("time").tolist() == list(range(1, 61))


@pytest.mark.parametrize("kind", ["dsjson", "text"])
def test_a_converted_file_is_the_log_that_is_read(tmp_path: Path, kind: str) -> None:
    found = events()
    spec = written(tmp_path, as_text(found) if kind == "text" else [json.dumps(one) for one in found], kind=kind)
    datasets.convert(spec, tmp_path / "log")
    read, stored = load(spec), load(str(tmp_path / "log"))
    assert read.displays.to_pydict() == stored.displays.to_pydict()
    assert read.conversions.equals(stored.conversions)
    first = load(spec, limit=20)
    assert first.displays["action"].to_pylist() == read.displays["action"].to_pylist()[:20]
    assert load(f"vw_{kind}", path=next(p for p in tmp_path.iterdir() if p.name.startswith("decisions"))).n_actions == 4


def test_decisions_that_were_never_shown_are_passed_over(tmp_path: Path, log: Log) -> None:
    lines = [json.dumps(one) for one in events()]
    lines[7:7] = [json.dumps({**events()[3], "EventId": "no", "_skipLearn": True})]
    lines[9:9] = [json.dumps({"RewardValue": 1.0, "EventId": "dangling"})]
    lines[11:11] = [json.dumps({**events()[3], "EventId": "deferred", "DeferredAction": True})]
    lines[13:13] = ['["checkpoint", 12]']
    for i, more in enumerate(({"o": [{"ActionTaken": True}]}, {"_skipLearn": False})):
        lines[20 + i] = json.dumps({**json.loads(lines[20 + i]), "DeferredAction": True, **more})
    found = load(written(tmp_path, lines))
    assert found.displays.equals(log.displays)
    assert found.meta.counts["lines_passed_over"] == 4
    for said in (r"4 lines", r"1 decisions that were never shown \(_skipLearn\)", "1 rewards whose decision",
                 r"1 decisions that were never activated", "1 checkpoints"):  # fmt: skip
        assert re.search(said, found.meta.notes[-1])
    assert "lines_passed_over" not in log.meta.counts
    assert not any("Passed over" in note for note in log.meta.notes)
    with pytest.raises(
        LogError, match=r"the log is empty.*Passed over were 1 lines: 1 decisions that were never shown"
    ):
        load(written(tmp_path, [lines[7]]))


def labelled(i: int, rng: np.random.Generator, p: list[float]) -> dict[str, Any]:
    """A decision whose label alone names what was chosen: `a` and `p` are in the order of the actions."""
    k = int(rng.choice(len(p), p=p))
    return {
        "_label_cost": -float(k == 2), "_label_probability": p[k], "_label_Action": k + 1, "_labelIndex": k,
        "Timestamp": f"2026-01-05T00:{i // 60:02}:{i % 60:02}Z", "EventId": f"e{i}", "a": [1, 2, 3, 4], "p": p,
        "c": {"U": {"x": i % 2}, "_multi": [{"A": {"n": f"n{j}"}} for j in range(4)]},
    }  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"_labelIndex": None},
        {"_label_Action": None},
        {"a": [0, 1, 2, 3]},
        {"p": None},
        {"p": None, "_p": [0.5, 0.2, 0.1, 0.2]},
        {"_label_probability": None},
    ],
)
def test_the_label_names_the_choice_in_whatever_order_actions_are_listed(tmp_path: Path, changes: Any) -> None:
    rng, p = np.random.default_rng(0), [0.5, 0.2, 0.1, 0.2]
    found = [labelled(i, rng, p) for i in range(200)]
    truth = np.array([one["_labelIndex"] for one in found])
    lines = [json.dumps({k: v for k, v in {**one, **changes}.items() if v is not None}) for one in found]
    spec = written(tmp_path, lines, action="position")
    if "p" in changes and "_p" not in changes:
        spec.write_text(
            spec.read_text()
            .replace('propensity = "probability"\n', "")
            .replace("weight =", 'propensity = "probability"\nweight =')
        )
    log = load(spec)
    assert np.array_equal(log.column("action"), truth)
    np.testing.assert_allclose(log.column("propensity"), np.array(p)[truth])
    assert log.conversions["display_id"].to_pylist() == np.flatnonzero(truth == 2).tolist()


def test_without_a_label_the_first_of_the_list_was_chosen(tmp_path: Path, log: Log) -> None:
    named = ("_labelIndex", "_label_Action", "_label_probability")
    lines = [json.dumps({k: v for k, v in one.items() if k not in named}) for one in events()]
    assert load(written(tmp_path, lines)).displays.equals(log.displays)
    spelt = [json.dumps(one).replace("_label_Action", "_label_action") for one in events()]
    assert load(written(tmp_path, spelt)).displays.equals(log.displays)


def test_a_kept_decision_stands_for_those_that_were_dropped(tmp_path: Path, log: Log) -> None:
    rng, lines, rewards = np.random.default_rng(5), [], []
    for one in (labelled(i % 3600, rng, [0.25] * 4) for i in range(8_000)):
        reward = float(rng.random() < 0.4)
        rewards.append(reward)
        drop = 0.0 if reward else 0.9
        one |= {"_label_cost": -reward, "EventId": str(len(rewards)), "pdrop": drop}
        # Some writers multiply the label's probability by the chance that the decision was kept.
        one["_label_probability"] *= (1.0 - drop) if len(rewards) % 2 else 1.0
        if rng.random() >= drop:
            lines.append(json.dumps(one))
    kept = load(written(tmp_path, lines, action="position"))
    weight = kept.column("weight")
    assert sorted(set(weight.round(9))) == [1.0, 10.0]
    paid = np.zeros(len(kept))
    paid[kept.conversions["display_id"].to_numpy()] = 1.0
    mean = (paid * weight).sum() / weight.sum()
    # Of the sampled sums: each dropped or not with its own chance, given the rewards.
    error = np.sqrt((weight**2 * (paid - mean) ** 2).sum()) / weight.sum()
    assert abs(mean - 0.4) < 4 * error < 0.1 < abs(paid.mean() - 0.4)
    assert "weight" not in log.schema.names, "decisions without pdrop have no weights"
    spec = written(tmp_path, lines, action="position")
    spec.write_text(spec.read_text().replace('weight = "pdrop.weight"\n', ""))
    with pytest.raises(SourceError, match=r'pdrop, which the spec does not read: write weight = "pdrop.weight"'):
        load(spec)


def test_decisions_without_times_or_ids_are_counted_by_rounds(tmp_path: Path, log: Log) -> None:
    lines = [json.dumps({k: v for k, v in one.items() if k not in ("Timestamp", "EventId")}) for one in events()]
    (tmp_path / "logs").mkdir()
    spec = written(tmp_path, lines)
    for name, part in (("a.dsjson", lines[:25]), ("b.dsjson", lines[25:])):
        (tmp_path / "logs" / name).write_text("".join(f"{line}\n" for line in part))
    whole, parts = load(spec), load(spec, path=tmp_path / "logs")
    assert whole.column("time").tolist() == list(range(1, 61))
    assert whole.meta.tick == "round"
    assert any("rounds count them" in note for note in whole.meta.notes)
    assert not any("rounds count them" in note for note in log.meta.notes)
    for column in ("action", "propensity", "eligible"):
        assert whole.displays[column].to_pylist() == log.displays[column].to_pylist()
    assert parts.displays.equals(whole.displays)
    with pytest.raises(SourceError, match=r"dsjson line 3: no Timestamp, which others have"):
        load(written(tmp_path, [json.dumps(one) for one in events()[:2]] + lines[2:]))


def test_text_in_several_files_is_one_log(tmp_path: Path) -> None:
    text = as_text(events())
    whole = load(written(tmp_path, text, kind="text"))
    blocks = text.split("\n\n")
    (tmp_path / "logs").mkdir()
    for name, part in (("a.txt", blocks[:20]), ("b.txt", blocks[20:])):
        (tmp_path / "logs" / name).write_text("\n\n".join(part))
    assert load(tmp_path / "spec.toml", path=tmp_path / "logs").displays.equals(whole.displays)


def test_a_decision_that_is_listed_twice_is_told_with_both_lines(tmp_path: Path, log: Log) -> None:
    lines = [json.dumps(one) for one in events()]
    spec = written(tmp_path, [*lines, lines[3]])
    with pytest.raises(
        LogError, match=r"^Column 'event': duplicate display \(\S* line 61: 'e3', as in \S* line 4\); keep"
    ):
        load(spec)
    left = load(spec, on_error="quarantine", quarantine_at_most="5%")
    assert left.displays.equals(log.displays)


def test_words_of_a_text_are_features() -> None:
    one = {**events()[0]}
    one["c"] = {**one["c"], "Page": {"_text": "new  phone new", "_other": "x"}}
    (unit,) = dsjson_units([(1, json.dumps(one))])
    assert unit.decision is not None
    words = {name: value for name, value in unit.decision.shared.items() if name.startswith("Page")}
    assert words == {"Page.new": 2.0, "Page.phone": 1.0}


def changed(**parts: Any) -> str:
    one = {**events()[1], "EventId": "changed", **parts}
    return json.dumps({key: value for key, value in one.items() if value is not None})


def inside(**parts: Any) -> str:
    return changed(c={**events()[1]["c"], **parts})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", r"Expecting property name.* at character"),
        ("1", "no JSON object"),
        ("[{}]", "an array of objects: write one object a line"),
        (changed(p=None, _label_probability=None), r"\(no p, and no _label_probability\)"),
        (changed(p=None, _label_probability=1.5), r"_label_probability 1.5 outside \(0, 1\]"),
        (changed(_p=[0.5]), "p and _p are two lists"),
        (changed(a=None), r"\(no a\)"),
        (changed(_labelIndex=9), "_labelIndex 9 is none of 0 to"),
        (changed(_labelIndex=None, _label_Action=0), "_label_Action 0 is none of 1 to"),
        (changed(_label_Action=1.5), "_label_Action 1.5 is no whole number"),
        (
            changed(_labelIndex=0, _label_Action=2),
            "_label_Action 2, counted from 1, and _labelIndex 0, counted from 0, are",
        ),
        (changed(_label_probability=1e-6), "_label_probability 1e-06 is not the 0.* that p has"),
        (changed(pdrop=1), r"pdrop 1 outside \[0, 1\)"),
        (changed(_skipLearn="yes"), "_skipLearn 'yes' is neither true nor false"),
        (changed(_label_cost="NaN"), "_label_cost 'NaN' is no finite number"),
        (changed(_label_ca={"action": 1.5}), "continuous actions, which are not read"),
        (changed(pdf=[]), "continuous actions, which are not read"),
        (changed(_label="1:-1:0.5"), "_label, a label that is not read"),
        (changed(_label_Weight=2), "_label_Weight, a label that is not read"),
        (changed(_label_COST=0.0), "_label_COST beside _label_cost"),
        (inside(_slots=[{}]), "_slots within features: several slots"),
        (inside(Sky={"_label_cost": 1}), "_label_cost within features: a label that is not read there"),
        (inside(Sky={"_multi": [{}]}), "_multi within features: lists actions a second time"),
        (inside(_multi=[{"__aid": 1}] * len(events()[1]["p"])), "__aid within features: names features that stand"),
        (changed(a=[1, 1]), "a is not the numbers 1 to ., or 0 to ., of the actions"),
        (changed(p=[0.5]), "p is not . probabilities"),
        (changed(p=[0.9, 0.9, 0.9, 0.9][: len(events()[1]["p"])]), "p sums to"),
        (changed(_label_cost="dear"), "_label_cost 'dear' is no number"),
        (changed(_label_cost=float("nan")), "_label_cost nan is no finite number"),
        (changed(_label_cost=10**400), "_label_cost 10+ is no finite number"),
        (changed(c={"_multi": []}), "_multi is no list of actions"),
        (changed(c={**events()[1]["c"], "far": 1e300}), "far 1e.300 is beyond 3.4e.38, the largest that Vowpal"),
        (changed(EventId="a\ud800"), "half a character"),
        (changed(c=None, _outcomes=[]), "several slots, which are not read"),
    ],
)
def test_a_line_that_is_no_decision_is_told_with_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    lines = [json.dumps(one) for one in events()]
    spec = written(tmp_path, [*lines[:4], line, *lines[4:]])
    with pytest.raises(SourceError, match=rf"A line that is no decision \(.*decisions\.dsjson line 5: .*{said}"):
        load(spec)
    left = load(spec, on_error="quarantine", quarantine_at_most="5%")
    assert (len(left), left.meta.counts["quarantined"]) == (60, 1)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("shared |a\n0:1:2 |x", r"probability 2 outside \(0, 1\]"),
        ("shared |a\n|x\n|y", "0 of 2 actions have a label"),
        ("shared |a\n0:1:0.5 |x\n0:1:0.5 |y", "2 of 2 actions have a label"),
        ("shared |a\n0:1 |x\n|y", "label '0:1' is no action:cost:probability"),
        ("shared |a\n0:1:0.5 |x y:much\n|y", "feature y 'much' is no number|feature x.*no number"),
        ("shared |a\n0:1:0.5 |x y:1e39\n|y", "feature x.y '1e39' is beyond"),
        ("shared |a:1e30\n0:1:0.5 |far:1e30 y:1e30\n|y", "feature far.y 1.0*1e.60 is beyond"),
        ("shared |a\n0:1:0.5 x\n|y", r"no \| before its features"),
        ("0:1:0.5 |x\nshared |a", "a shared line that is not the first"),
        ("ccb shared |a\nccb action |x\nccb slot 0:1:0.5 |y", "ccb: several slots, which are not read"),
        ("slates shared 0.5 |a", "slates: several slots, which are not read"),
        ("ca 185.1:0.6:0.2 |a", "ca: continuous actions, which are not read"),
    ],
)
def test_lines_that_are_no_decision_are_told_by_the_first(tmp_path: Path, block: str, said: str) -> None:
    text = as_text(events())
    with pytest.raises(SourceError, match=rf"A line that is no decision \(.*decisions\.txt line 1: .*({said})"):
        load(written(tmp_path, f"{block}\n\n{text}", kind="text"))


def test_where_no_line_is_a_decision_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="A line that is no decision"):
        load(written(tmp_path, ["nothing", "here"]))
    with pytest.raises(SourceError, match="the file is empty"):
        load(written(tmp_path, ""))


def test_an_action_that_has_no_name_is_told(tmp_path: Path) -> None:
    lines = [json.dumps(one) for one in events()]
    del (nameless := events()[4])["c"]["_multi"][0]["_tag"]
    with pytest.raises(LogError, match=r"line 5"):
        load(written(tmp_path, [*lines[:4], json.dumps(nameless), *lines[5:]]))
    with pytest.raises(SourceError, match=r"no column 'action\.name'"):
        load(written(tmp_path, lines, action="name"))


PLAIN = """
name = "plain"
title = "--cb"
licence = "none"
source = { files = "decisions.txt", format = "vw" }
time = { unit = "round" }
display = { time = "time", action = "action.position", propensity = "probability" }
conversion = { indicator = "rewarded", immediate = true, value = "reward" }
context = { columns = ["s.a", "s.b"] }
"""


def test_lines_of_cb_name_their_action(tmp_path: Path) -> None:
    (tmp_path / "decisions.txt").write_text("1:-1:0.5 |s a:2 b\n3:0.5:0.25 tag|s a:1\n2:0:0.25 |s b:0.5\n")
    (tmp_path / "spec.toml").write_text(PLAIN)
    found = load(tmp_path / "spec.toml")
    assert list(found.labels) == ["1", "2", "3"]
    assert found.column("action").tolist() == [0, 2, 1]
    assert found.column("propensity").tolist() == [0.5, 0.25, 0.25]
    assert found.conversions["value"].to_pylist() == [1.0, -0.5]
    assert found.column("time").tolist() == [1, 2, 3]
    assert "eligible" not in found.schema.names


def test_vowpal_wabbit_reads_the_same_labels(tmp_path: Path) -> None:
    """What VowpalWabbit predicts and logs is what the log says, and it reads our lines as we do."""
    vw = pytest.importorskip("vowpal_wabbit_next", reason="VowpalWabbit is not installed (extra bench, Python < 3.13)")
    workspace = vw.Workspace(["--cb_explore_adf", "--epsilon", "0.3", "--quiet"])
    text, rng, lines, chances = vw.TextFormatParser(workspace), np.random.default_rng(0), [], []
    for i in range(30):
        actions = [f"|i id={tag}" for tag in DRINKS[: 2 + i % 4]]
        predicted = workspace.predict_one([text.parse_line(line) for line in [f"shared |Sky h:{i % 2}", *actions]])
        order = [int(action) for action, _ in predicted]
        p = np.array([chance for _, chance in predicted], np.float64)
        at = int(rng.choice(len(p), p=p / p.sum()))
        order, p = [order[at], *(o for j, o in enumerate(order) if j != at)], np.array([p[at], *np.delete(p, at)])
        cost = -float(rng.random() < 0.5)
        one = {
            "_label_cost": cost, "_label_probability": float(p[0]), "_label_Action": order[0] + 1,
            "_labelIndex": order[0], "Timestamp": f"2026-01-05T08:00:{i:02}Z", "EventId": str(i),
            "a": [o + 1 for o in order], "p": [float(x) for x in p],
            "c": {"Sky": {"h": i % 2}, "_multi": [{"_tag": d, "i": {"id": d}} for d in DRINKS[: 2 + i % 4]]},
        }  # fmt: skip
        lines.append(json.dumps(one))
        read = vw.DSJsonFormatParser(workspace).parse_json(lines[-1])
        labels = [example.get_label().label for example in read[1:]]
        assert [at for at, label in enumerate(labels) if label] == [order[0]]
        assert labels[order[0]][1:] == (cost, np.float32(p[0]))
        workspace.learn_one(read)
        chances.append(p[0] / p.sum())
    found = load(written(tmp_path, lines))
    np.testing.assert_allclose(found.column("propensity"), chances, rtol=1e-12)
