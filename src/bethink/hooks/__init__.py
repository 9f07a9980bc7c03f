"""What agents' hooks call: a briefing when a session starts, what fits a prompt, and a note of each transcript that grew."""
