"""The files in deploy/ parse, and name flags, routes and metrics that exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from regard.cli.commands.serve import ServeCommand

DEPLOY = Path(__file__).parents[1] / "deploy"
FLAGS = {f"--{name.replace('_', '-')}" for name in ServeCommand.__dataclass_fields__}
ROUTES = {"/health", "/ready", "/metrics"}


def read_yaml(name: str) -> list[Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def flags_of(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


def test_the_image_runs_with_flags_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    entry, command = (json.loads(re.findall(rf"^{name} (\[.*\])$", text, re.M)[0]) for name in ("ENTRYPOINT", "CMD"))
    assert entry[:2] == ["regard", "serve"]
    assert flags_of(entry + command) <= FLAGS
    assert "USER 10001" in text
    assert set(re.findall(r"8000(/\w+)", text)) <= ROUTES


def test_the_image_is_built_without_models_keys_and_environments() -> None:
    everything, *parts = [
        line
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert everything == "*"
    kept = [part[1:] for part in parts if part.startswith("!")]
    assert all((DEPLOY.parent / part).exists() for part in kept)
    assert "deploy" not in kept


def test_the_unit_runs_with_flags_that_exist() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "regard.service", encoding="utf-8")
    words = shlex.split(unit["Service"]["ExecStart"])
    assert flags_of(words) <= FLAGS
    drain = float(words[words.index("--drain-seconds") + 1])
    assert float(unit["Service"]["TimeoutStopSec"]) > drain
    assert unit["Service"]["ExecReload"].startswith("/bin/kill -HUP")


def test_kubernetes_asks_the_right_routes() -> None:
    deployment, service = read_yaml("kubernetes.yaml")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert flags_of(container["args"]) <= FLAGS
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert pod["terminationGracePeriodSeconds"] > 30
    assert pod["securityContext"]["runAsNonRoot"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]


def test_compose_names_files_that_exist() -> None:
    (compose,) = read_yaml("compose.yaml")
    assert compose["services"].keys() == {"regard", "prometheus", "grafana"}
    for service in compose["services"].values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert source == "./models" or (DEPLOY / source).is_file()
    (prometheus,) = read_yaml("prometheus.yaml")
    assert prometheus["scrape_configs"][0]["static_configs"] == [{"targets": ["regard:8000"]}]
    for name in ("datasources.yaml", "dashboards.yaml"):
        assert read_yaml(f"grafana/{name}")[0]["apiVersion"] == 1


def test_the_dashboard_shows_metrics_that_exist() -> None:
    metrics = pytest.importorskip("regard.serve.http.metrics", reason="needs the extra serve")
    text = metrics.ServeMetrics().text().decode()
    known = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    dashboard = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    names = set(re.findall(r"\bregard_\w+", json.dumps([panel["targets"] for panel in dashboard["panels"]])))
    assert len(names) >= 10
    assert {name.removesuffix("_bucket") for name in names} <= known
