"""Entry points of agents' hooks: a briefing, prompt recall, tool calls, and a note of each turn."""

LONGEST_INPUT = 8_000_000  # bytes of an agent's message; a tool's answer may come along
