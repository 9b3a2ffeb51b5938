"""The inputs of a training on labeled data, from records to a `TrainingInputs`."""
