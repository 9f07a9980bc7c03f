"""Connecting agent hosts: which files each of them reads, and how entries are put into files that belong to other people.

connect    install and uninstall: the recipe        check     what `doctor` proves of each host
claude codex copilot gemini cursor opencode         what each host needs, and where
entries    entries into a text and out of it        jsonc, toml   the text editing below it
record     what was put where                       command   how this program is started
"""
