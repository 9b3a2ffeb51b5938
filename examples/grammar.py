"""Some thirty thousand English sentences with their Spanish, put together from a few dozen words.

Spanish says the adjective after its noun and bends it to the noun's gender: enough to see attention cross over.
"""

from __future__ import annotations

import random

NOUNS = {
    "cat": ("gato", "o"),
    "dog": ("perro", "o"),
    "boy": ("niño", "o"),
    "horse": ("caballo", "o"),
    "teacher": ("maestro", "o"),
    "girl": ("niña", "a"),
    "cow": ("vaca", "a"),
    "queen": ("reina", "a"),
    "nurse": ("enfermera", "a"),
    "hen": ("gallina", "a"),
}
ADJECTIVES = {
    "black": "negr",
    "white": "blanc",
    "small": "pequeñ",
    "old": "viej",
    "tired": "cansad",
    "strange": "extrañ",
    "beautiful": "hermos",
    "sick": "enferm",
}
VERBS = {"sleeps": "duerme", "sings": "canta", "eats": "come", "waits": "espera", "runs": "corre", "plays": "juega"}
PLACES = {
    "in the garden": "en el jardín",
    "in the kitchen": "en la cocina",
    "by the river": "junto al río",
    "behind the house": "detrás de la casa",
    "under the tree": "bajo el árbol",
}
TIMES = {"today": "hoy", "every day": "cada día", "at night": "de noche", "now": "ahora"}
ARTICLES = {"the": {"o": "el", "a": "la"}, "a": {"o": "un", "a": "una"}, "my": {"o": "mi", "a": "mi"}}


def pairs(count: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """So many different sentences, each with its translation."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        noun, adjective, verb = rng.choice(list(NOUNS)), rng.choice(list(ADJECTIVES)), rng.choice(list(VERBS))
        article, place, time = rng.choice(list(ARTICLES)), rng.choice(list(PLACES)), rng.choice(list(TIMES))
        spanish, gender = NOUNS[noun]
        before = "an" if article == "a" and adjective[0] in "aeiou" else article
        subject = f"{ARTICLES[article][gender]} {spanish} {ADJECTIVES[adjective]}{gender}"
        found[f"{before} {adjective} {noun} {verb} {place} {time}."] = (
            f"{subject} {VERBS[verb]} {PLACES[place]} {TIMES[time]}."
        )
    return list(found.items())
