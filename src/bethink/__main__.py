"""`python -m bethink` is the command `bethink`."""

import sys

from bethink.surface.cli.main import main

sys.exit(main())
