"""Patterns over natural language, one module per purpose, each pattern beside its examples."""
