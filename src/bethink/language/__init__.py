"""Patterns over natural language, one module per purpose, each next to the examples that it must hold for."""
