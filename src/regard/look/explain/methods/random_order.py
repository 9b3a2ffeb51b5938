"""Random scores: what every method has to beat."""

from __future__ import annotations

import numpy as np

from regard.look.explain.methods.method import Attribution, Method, MethodOptions
from regard.look.explain.scorer import Scorer


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    generator = np.random.default_rng([options.seed, *scorer.text.sequences[0].all_ids])
    return Attribution(np.where(scorer.text.erasable, generator.random(len(scorer.text)), 0.0))


METHOD = Method("random", "random order", explain, signed=False)
