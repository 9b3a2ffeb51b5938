"""How good a model is on data it has not seen."""
