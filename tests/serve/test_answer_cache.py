from __future__ import annotations

from regard.serve.answer_cache import ENTRY_BYTES, AnswerCache


def test_answers_stay_within_the_bytes() -> None:
    cache = AnswerCache(3 * ENTRY_BYTES + 100)
    for number in range(10):
        cache.put(number, {"value": number})
        cache.get(0)  # used often, so it stays
    assert cache.get(0) == {"value": 0}
    assert cache.get(5) is None
    assert cache.get(9) == {"value": 9}
    assert cache.bytes <= cache.max_bytes
    assert len(cache) <= 3


def test_large_answers_and_disabled_caches_store_nothing() -> None:
    cache = AnswerCache(300)
    cache.put("a", "x" * 400)
    assert len(cache) == cache.bytes == 0
    none = AnswerCache(0)
    none.put("a", 1)
    assert none.get("a") is None


def test_an_answer_is_a_copy() -> None:
    cache = AnswerCache(10_000)
    cache.put("a", {"values": [1]})
    stored = cache.get("a")
    assert stored is not None
    stored["values"].append(2)
    assert cache.get("a") == {"values": [1]}
