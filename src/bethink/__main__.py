"""`python -m bethink` is the command `bethink`."""

import sys

from bethink.app.cli.main import main

sys.exit(main())
