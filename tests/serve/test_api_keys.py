from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import InputError
from regard.serve.api_keys import ApiKeys, check_address, read_api_keys


def test_any_of_the_keys_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("# for the page\nfirst-key-1\n\nsecond-key-2\n")
    keys = read_api_keys(path)
    assert keys.accept("Bearer first-key-1")
    assert keys.accept("bearer second-key-2")
    for wrong in (None, "", "Bearer", "Bearer third", "Basic first-key-1", "first-key-1", "Bearer \udc80"):
        assert not keys.accept(wrong)
    assert ApiKeys().accept(None)


@pytest.mark.parametrize(("content", "message"), [("", "has no key"), ("short\n", "less than 8"), (None, "cannot be")])
def test_bad_files(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "keys.txt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_api_keys(path)


def test_other_addresses_need_a_key() -> None:
    keys = ApiKeys(["long-enough"])
    check_address("127.0.0.1", ApiKeys(), no_auth=False)
    check_address("0.0.0.0", keys, no_auth=False)
    check_address("0.0.0.0", ApiKeys(), no_auth=True)
    with pytest.raises(InputError, match="--api-key-file"):
        check_address("0.0.0.0", ApiKeys(), no_auth=False)
    with pytest.raises(InputError, match="contradict"):
        check_address("0.0.0.0", keys, no_auth=True)
