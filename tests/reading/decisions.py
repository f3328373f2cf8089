"""Decisions among drinks as VowpalWabbit logs them, and specs that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from evaluator.reading.locate import bundled_folder

DRINKS = ["latte", "mocha", "brew", "tea", "juice"]


def event(i: int, rng: np.random.Generator, **changes: Any) -> dict[str, Any]:
    """One decision among some of five drinks, as Personalizer logs it."""
    k = int(rng.integers(2, 5))
    tags = [str(tag) for tag in rng.choice(DRINKS, k, replace=False)]
    p = rng.dirichlet(np.ones(k)) * 0.5 + 0.5 / k
    chosen = int(rng.integers(k))
    order = [chosen, *(j for j in range(k) if j != chosen)]
    reward = float(rng.choice([0.0, 0.0, 1.0, -0.5]))
    return {
        "_label_cost": -reward, "_label_probability": float(p[chosen]), "_label_Action": chosen + 1,
        "_labelIndex": chosen, "o": [{"v": reward, "EventId": f"e{i}", "ActionTaken": False}],
        "Timestamp": f"2026-01-05T08:{i // 60:02}:{i % 60:02}.5000000Z", "Version": "1", "EventId": f"e{i}",
        "a": [j + 1 for j in order],
        "c": {"Sky": [{"hot": bool(i % 2), "name": ["sun", "rain"][i % 2]}], "_device": "x",
              "_multi": [{"_tag": tag, "i": {"id": tag, "cups": DRINKS.index(tag) / 4}} for tag in tags]},
        "p": [float(np.float32(p[j])) for j in order], "VWState": {"m": "m"}, **changes,
    }  # fmt: skip


def events(n: int = 60) -> list[dict[str, Any]]:
    rng = np.random.default_rng(7)
    return [event(i, rng) for i in range(n)]


def as_text(found: list[dict[str, Any]]) -> str:
    """The same decisions as --cb_adf reads them, words as features of their own."""
    lines = []
    for one in found:
        sky = one["c"]["Sky"][0]
        lines.append(f"shared |Sky hot:{int(sky['hot'])} name={sky['name']}")
        for j, action in enumerate(one["c"]["_multi"]):
            label = f"0:{one['_label_cost']}:{one['p'][0] / sum(one['p'])!r} " if j == one["_labelIndex"] else ""
            lines.append(f"{label}{action['_tag']}|i id={action['i']['id']} cups:{action['i']['cups']}")
        lines.append("")
    return "\n".join(lines)


def written(folder: Path, lines: list[str] | str, *, kind: str = "dsjson", action: str = "tag") -> Path:
    """The bundled spec beside a file of one's own, with what names an action."""
    name = {"dsjson": "decisions.dsjson", "text": "decisions.txt"}[kind]
    (folder / name).write_text(lines if isinstance(lines, str) else "".join(line + "\n" for line in lines))
    spec = (bundled_folder() / f"vw_{kind}" / "spec.toml").read_text()
    (folder / "spec.toml").write_text(spec.replace("action.position", f"action.{action}"))
    return folder / "spec.toml"
