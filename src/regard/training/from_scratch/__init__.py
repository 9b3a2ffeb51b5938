"""Networks that are trained from scratch: presets and their settings, vocabularies, baselines."""
