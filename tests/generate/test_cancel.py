from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.serve.helpers import TEXTS, tiny

from regard.generate.cancel import GenerationCancelled, cancellable, check_cancelled


@pytest.mark.parametrize("settings", [{}, {"beams": 2}])
def test_a_generation_ends_between_two_steps(settings: dict[str, Any]) -> None:
    stop = threading.Event()
    with cancellable(stop):
        tiny("gpt2").generate(TEXTS[0], max_tokens=4, **settings)
        stop.set()
        with pytest.raises(GenerationCancelled):
            tiny("gpt2").generate(TEXTS[0], max_tokens=4, **settings)
    check_cancelled()
