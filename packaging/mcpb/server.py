"""The entry of the bundle: the same server as `recollect mcp`."""

import sys

from recollect.cli.main import main

sys.exit(main(["mcp", *sys.argv[1:]]))
