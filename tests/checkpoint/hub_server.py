"""A server that answers as the hub does, and a process that loads models from it."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
from pathlib import Path
from typing import Any

from tests import fork_server

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.ThreadingHTTPServer):
    """Answers as the hub does: what a model has, and its files."""

    def __init__(self, models: dict[str, dict[str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.models, self.requests = models, list[str]()


class Answer(http.server.BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            files = self.server.models.get("/".join(parts[2:4]))
            if files is not None and len(parts) <= 6 and parts[4:5] != ["tree"]:
                message = {
                    "id": "/".join(parts[2:4]),
                    "sha": COMMIT,
                    "siblings": [{"rfilename": name} for name in files],
                }
                return self.answer(json.dumps(message).encode())
            if files is not None and parts[4:5] == ["tree"]:
                rows = [{"type": "file", "path": n, "size": len(c), "oid": etag(c)} for n, c in files.items()]
                return self.answer(json.dumps(rows).encode())
        elif parts[2:3] == ["resolve"] and parts[3] in ("main", COMMIT):
            content = self.server.models.get("/".join(parts[:2]), {}).get("/".join(parts[4:]))
            if content is not None:
                return self.answer(content, {"ETag": f'"{etag(content)}"', "X-Repo-Commit": COMMIT})
        return self.answer(b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, 404)

    def answer(self, content: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


def etag(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


ASK = """
import json, sys, regard
for name in sys.argv[1:]:
    try:
        model = regard.load(name)
        print(json.dumps([model.family, str(model.folder), sorted(path.name for path in model.folder.iterdir())]))
    except regard.errors.RegardError as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
"""


def ask(hub: Hub, cache: Path, *names: str, **settings: str) -> list[Any]:
    """What a process of its own gets for these names."""
    options = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    options |= {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HUB_CACHE": str(cache), "HF_HOME": str(cache)}
    options |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1", **settings}
    done = fork_server.run("-c", ASK, *names, env=options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
