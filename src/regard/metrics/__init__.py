"""Metrics with confidence intervals: labels, numbers, tags, entities, answers, translations, language models."""
