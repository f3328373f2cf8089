"""Every command that writes, on a log so small that writing is most of the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.reading.sources import dataset

DISPLAYS = 200


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Parameters
    ----------
    name
        Of the test.
    words
        ``{out}`` is the folder that all outputs are in, ``{log}`` a spec in ``{folder}``.
    other
        Words to add for another result: who else writes the same output.
    targets
        Outputs in that folder; of several that belong `together`, the last is there only if all are.
    old
        Words that write what is there before.
    link
        A link to make in that folder before: name and where it leads.
    kept
        What an interrupted command keeps for its next run.
    """

    name: str
    words: str
    other: str
    targets: tuple[str, ...] = ("out",)
    together: bool = True
    old: str | None = None
    link: tuple[str, str] | None = None
    kept: str | None = None

    @property
    def on_command_line(self) -> bool:
        """Whether it is a command; a Python function leaves signals to its caller."""
        return self.words.startswith("evaluate")

    def __str__(self) -> str:
        return self.name


CONVERT = "evaluate datasets convert {log} {out}/out"
SMALL = "{log} --limit 60"
COMMANDS = (
    Command("replay", "evaluate replay -d {log} -p ucb1 --out {out}/out", "--seed 1"),
    Command("replay-policy", "evaluate replay -d {log} -p ucb1 --save-policy {out}/out.npz", "--seed 1", ("out.npz",)),
    Command(
        "replay-both",
        "evaluate replay -d {log} -p ucb1 --out {out}/out --save-policy {out}/out.npz",
        "--seed 1",
        ("out", "out.npz"),
        together=False,
    ),
    Command(
        "compare",
        "evaluate compare -d {log} -p ucb1 -p random -w 20,none --bootstrap 0 --out {out}/out",
        "--seed 1",
        kept="out.partial",
    ),
    Command(
        "audit",
        "evaluate audit -d {log} -p ucb1 -p random --twins 10 --out {out}/out",
        "--seed 1",
        kept="out.partial",
    ),
    Command(
        "simulate",
        "evaluate simulate -s vernade2017-low -p ucb1 -n 2 --horizon 100 --out {out}/out",
        "--seed 1",
        kept="out.partial",
    ),
    Command(
        "delays",
        "evaluate delays {log} --by none --families weibull --bootstraps 19 --out {out}/out",
        "--level 0.9",
        kept="out.partial",
    ),
    Command("convert", CONVERT, "--limit 90"),
    Command("convert-over", f"{CONVERT} --overwrite", "--limit 90", old=f"{CONVERT} --limit 60"),
    Command(
        "convert-link",
        f"{CONVERT} --overwrite",
        "--limit 90",
        ("real",),
        old="evaluate datasets convert {log} {out}/real --limit 60",
        link=("out", "real"),
    ),
    Command(
        "init",
        "evaluate datasets init {folder}/named.csv -o {out}/out.toml",
        "--conversions {folder}/sales.csv",
        ("out.toml",),
    ),
    Command(
        "make",
        "evaluate datasets make criteo_twin --rows 1000 -o {out}/out.gz",
        "--seed 1",
        ("out.gz.truth.json", "out.gz.truth.parquet", "out.gz"),
    ),
    Command("save-fit", "save_fit {out}/out.json", "2", ("out.json",), old="save_fit {out}/out.json 3"),
    Command("save-policy", "save_policy {out}/out.npz", "2", ("out.npz",)),
)


def words(text: str, log: Path, out: Path) -> list[str]:
    """Return the words of a command."""
    return text.format(log=log, folder=log.parent, out=out).split()


def small_log(folder: Path) -> Path:
    """Write a log and return its spec."""
    rng = np.random.default_rng(5)
    folder.mkdir()
    rows, named, sales = ["t,ad,sold"], ["time,banner,sold_at,id"], ["id,sold_at"]
    for second in range(DISPLAYS):
        sold = second + rng.integers(1, 30) if rng.random() < 0.4 else ""
        rows.append(f"{second},{rng.choice(list('abc'))},{sold}")
        named.append(f"{rows[-1]},d{second}")
        sales += [f"d{second},{sold}"] if sold else []
    # With names that a draft understands.
    (folder / "named.csv").write_text("\n".join(named))
    (folder / "sales.csv").write_text("\n".join(sales))
    return dataset(folder, rows)
