"""Flags of commands: their values, their help, and files of settings."""
