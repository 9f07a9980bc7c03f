"""Folders of Bethink on this machine. Light, because a hook with nothing to do loads only this."""

import os

from bethink.system import WINDOWS


def find(variable: str, usual: str) -> str:
    """Return our folder where the system keeps such files. BETHINK_HOME is one for all."""
    if home := os.environ.get("BETHINK_HOME"):
        return os.path.expanduser(home)  # noqa: PTH111 - pathlib alone takes longer than such a hook
    local = os.environ.get("LOCALAPPDATA") if WINDOWS else None
    base = os.environ.get(variable) or local or os.path.join(os.path.expanduser("~"), usual)  # noqa: PTH111, PTH118
    return os.path.join(base, "bethink")  # noqa: PTH118


def find_data() -> str:
    """Return the folder of the database and the models."""
    return find("XDG_DATA_HOME", ".local/share")


def find_enforced() -> str:
    """Return the file of enforced rules."""
    return os.path.join(find_data(), "enforced.json")  # noqa: PTH118


def is_enforcing() -> bool:
    """Return True if a rule is enforced anywhere on this machine."""
    return os.path.exists(find_enforced())  # noqa: PTH110
