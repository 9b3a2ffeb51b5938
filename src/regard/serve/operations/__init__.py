"""What a request can ask of a model, one file for each kind of computation."""
