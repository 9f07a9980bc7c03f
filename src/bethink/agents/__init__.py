"""Agent hosts: one module each reads its transcripts; `install` has what it takes to connect them.

claude  codex  copilot  gemini  opencode  cursor   readers of agents' transcripts
plain                                              chats of no host, in Markdown or JSON lines
base  transcript                                   what readers share; whose a transcript is, and where they are
install  edit                                      connecting agents: their files, and the text in them
"""

from bethink.agents.transcript import HOSTS, detect, is_kept, load_reader, locate, read

__all__ = ["HOSTS", "detect", "is_kept", "load_reader", "locate", "read"]
