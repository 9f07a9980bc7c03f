"""Write what the plugins share with the package: skills from `src/bethink/skills`, hooks from `src/bethink/agents`, the version.

python plugins/render.py           write
python plugins/render.py --check   write nothing; exit 1 if something is out of date
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "src"))

from bethink import __version__, skills  # noqa: E402
from bethink.agents import claude, codex, copilot  # noqa: E402

# Plugin → the agent whose form of skills it has. The neutral one must hold nothing that the open format does not know.
PLUGINS = {"bethink": claude.AGENT, "neutral": codex.AGENT}
# The agents that load the hooks of plugins/bethink.
HOOKED = (claude.AGENT, codex.AGENT, copilot.AGENT)
LAUNCHER = '"${CLAUDE_PLUGIN_ROOT}/bin/bethink-hook"'
HOOKS = HERE / "bethink" / "hooks" / "hooks.json"
ABOUT = "Long-term memory: a briefing at the start, what is known about a prompt or a tool call, and a note of each turn to be remembered"
MANIFESTS = (
    ROOT / ".claude-plugin" / "marketplace.json",
    HERE / "bethink" / ".claude-plugin" / "plugin.json",
    HERE / "neutral" / "plugin.json",
)
VERSION = re.compile(r'("version": )"[^"]*"')


def render_hooks() -> str:
    """Return the hooks that `bethink install` writes for each of these agents, in one file.

    Agents that declare an event alike share a hook. Where they differ, the launcher gets the names of those that a hook is for, because
    every agent runs all hooks of an event that it knows.
    """
    hosts: dict[tuple[str, str, str], list[str]] = {}
    for agent in HOOKED:
        if agent.hooks and agent.install:
            for name, event in agent.hooks.events.items():
                matcher = agent.install.matchers.get(event, "")
                hosts.setdefault((name, event, matcher), []).append(agent.name)
    form = codex.AGENT.install  # has the shortest limits
    assert form is not None
    events: dict[str, list[dict[str, object]]] = {}
    for (name, event, matcher), names in hosts.items():
        words = [LAUNCHER, event, *(names if len(names) < len(HOOKED) else ())]
        last = form.last if event == "session-end" else {}
        hook = {**form.hook, "command": " ".join(words), **last}
        group = {"matcher": matcher} if matcher else {}
        events.setdefault(name, []).append({**group, "hooks": [hook]})
    return json.dumps({"description": ABOUT, "hooks": events}, indent=2) + "\n"


def files() -> dict[Path, str]:
    """Everything that is rendered: file → its text."""
    made = {
        HERE / plugin / "skills" / path: text
        for plugin, agent in PLUGINS.items()
        if agent.install
        for path, text in skills.render(agent.install.skill_fields).items()
    }
    made[HOOKS] = render_hooks()
    for file in MANIFESTS:
        made[file] = VERSION.sub(rf'\1"{__version__}"', file.read_text("utf-8"))
    for plugin in PLUGINS:
        made[HERE / plugin / "LICENSE"] = (ROOT / "LICENSE").read_text("utf-8")
    return made


def outdated() -> list[str]:
    """The files that differ from what would be written, and skills that are no more."""
    made = files()
    there = {
        file
        for plugin in PLUGINS
        for file in (HERE / plugin / "skills").rglob("*")
        if file.is_file()
    }
    wrong = {
        file for file, text in made.items() if not file.exists() or file.read_text("utf-8") != text
    }
    return sorted(str(file.relative_to(ROOT)) for file in wrong | (there - set(made)))


def main() -> int:
    if "--check" in sys.argv[1:]:
        for name in outdated():
            sys.stderr.write(f"{name} is out of date; run `make plugin`.\n")
        return 1 if outdated() else 0
    made = files()
    for plugin in PLUGINS:
        shutil.rmtree(HERE / plugin / "skills", ignore_errors=True)
    for file, text in made.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
