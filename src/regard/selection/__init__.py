"""Choosing by measurement: scores of a recipe by cross-validation, and a search for settings."""
