"""The entry of the bundle: the same server as `bethink mcp`."""

import sys

from bethink.app.cli.main import main

sys.exit(main(["mcp", *sys.argv[1:]]))
