"""Flags of commands: their values, their help, those of transformers' Trainer, and files of settings."""
