"""Looking at a model over a data set: how faithful explanations are, which words and heads matter."""
