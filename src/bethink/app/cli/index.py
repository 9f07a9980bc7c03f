COMMANDS: dict[str, tuple[str, str, str]] = {}
