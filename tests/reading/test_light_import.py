import subprocess
import sys
from pathlib import Path

from tests.reading.sources import dataset

HEAVY = ["polars", "pyarrow", "numpy", "pydantic", "numba", "scipy"]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, evaluator.datasets as d; d.load; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_files_loads_nothing_of_object_stores(tmp_path: Path) -> None:
    code = f"import sys, evaluator.datasets as d; d.load({str(dataset(tmp_path))!r}); print('obstore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
