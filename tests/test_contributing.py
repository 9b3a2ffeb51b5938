"""The snippets of CONTRIBUTING.md run in a process of their own, since they change registries, and work together."""

from __future__ import annotations

import re
from pathlib import Path

from tests import fork_server

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
USE = """
import sys
from pathlib import Path

import regard
from regard import cli
from regard.data.readers import read

Path("reviews.kv").write_text("".join(f"text=soup number {n};label={'ny'[n % 2]}\\n" for n in range(40)))
result = regard.train("reviews.kv", preset="tiny-bert", steps=2, device="cpu", out="run")
assert {"first_letter", "balanced_accuracy"} <= set(result.scores), result.scores
Path("recipes.csv").write_text("dish,minutes\\nBoil an egg.,4\\n")
assert [record.minutes for record in read("recipes.csv")] == [4.0]
sys.exit(cli.main(["toy-words", "three short words"]))
"""


def test_the_snippets_run_and_work_together(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    script = tmp_path / "snippets.py"
    script.write_text("\n".join([*blocks, USE]), encoding="utf-8")
    done = fork_server.run(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3\n"


def test_the_files_that_it_names_exist() -> None:
    names = re.findall(r"`((?:src|tests)/[\w/]+\.py)`", PAGE.read_text(encoding="utf-8"))
    assert names
    assert [name for name in names if not (PAGE.parent / name).exists()] == []
