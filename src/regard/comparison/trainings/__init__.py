"""The trainings of a comparison: which models, on which rows, in which time, and what they cost."""
