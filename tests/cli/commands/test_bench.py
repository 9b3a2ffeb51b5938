from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.helpers import Capture, run
from tests.serve.load_test.helpers import answering


def test_a_server_is_measured(capsys: Capture, tmp_path: Path) -> None:
    with answering() as url:
        code, out, _ = run(capsys, "bench", "serve", url, "--rate", 20, 40, "--seconds", 0.3, "--goal-ms", 5000)
        assert code == 0
        assert "highest rate with p99 below 5000 ms: 40.0 requests per second" in out
        plot = tmp_path / "load.png"
        arguments = ("bench", "serve", url, "--rate", 20, "--seconds", 0.3, "--plot", plot, "--json")
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert json.loads(out)["results"][0]["rate"] == 20
        assert plot.exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("http://127.0.0.1:9",), 1, "does not answer /embed"),
        (("127.0.0.1:9",), 1, "not the address"),
        (("http://127.0.0.1:9", "--plot", "x.pdf"), 2, "ends in .png"),
        (("http://127.0.0.1:9", "--seconds", "0"), 2, "--seconds is 0"),
        (("http://127.0.0.1:9", "--mean-tokens", "0"), 1, "--mean-tokens"),
    ],
)
def test_wrong_use(capsys: Capture, arguments: tuple[str, ...], status: int, message: str) -> None:
    code, _, err = run(capsys, "bench", "serve", *arguments)
    assert message in err
    assert code == status
