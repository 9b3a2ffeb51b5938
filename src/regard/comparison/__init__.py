"""Which model is best for this data: paired comparisons of trained models, and `regard.compare`.

Results of a comparison are the frozen dataclasses of `regard.comparison.result`.
"""

from regard.comparison.result import Comparison, ModelResult, PairResult, SliceResult

__all__ = ["Comparison", "ModelResult", "PairResult", "SliceResult"]
