"""What a training writes: metrics, curves, the model card and run.json."""
