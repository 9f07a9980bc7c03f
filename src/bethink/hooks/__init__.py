"""Entry points of agents' hooks: a briefing, prompt recall, tool calls, and a note of each turn."""
