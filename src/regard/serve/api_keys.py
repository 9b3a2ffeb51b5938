"""API keys: one per line of a file, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path

from regard.errors import InputError

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
MIN_KEY_LENGTH = 8


class ApiKeys:
    """The keys that are accepted. Without any, every request is."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def accept(self, authorization: str | None) -> bool:
        """Whether the value of the Authorization header, `Bearer KEY`, has one of the keys."""
        if not self._digests:
            return True
        scheme, _, key = (authorization or "").partition(" ")
        digest = hashlib.sha256(key.strip().encode("utf-8", "replace")).digest()
        matches = [hmac.compare_digest(digest, known) for known in self._digests]  # all of them: no early end
        return scheme.lower() == "bearer" and any(matches)


def read_api_keys(path: str | Path) -> ApiKeys:
    """The keys of a file, one per line; empty lines and lines that start with # are skipped."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--api-key-file {path} cannot be read ({error}). Give a text file, one key per line."
        ) from error
    keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not keys:
        raise InputError(f"--api-key-file {path} has no key. Write one per line.")
    short = next((number for number, key in enumerate(keys, 1) if len(key) < MIN_KEY_LENGTH), None)
    if short is not None:
        raise InputError(
            f"--api-key-file {path}: key {short} has less than {MIN_KEY_LENGTH} characters. Use longer ones."
        )
    return ApiKeys(keys)


def check_address(host: str, keys: ApiKeys, *, no_auth: bool) -> None:
    """Raise InputError for an address that others can reach, unless keys are needed or --no-auth was set."""
    if no_auth and keys:
        raise InputError("--no-auth and --api-key-file contradict each other. Leave one out.")
    if host not in LOCAL_HOSTS and not keys and not no_auth:
        raise InputError(
            f"--host {host} can be reached from other machines, and no API key was set. Add --api-key-file FILE, or "
            "--no-auth if everyone who reaches the port may use the models."
        )
