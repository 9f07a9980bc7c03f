"""`python -m recollect` is the command `recollect`."""

import sys

from recollect.cli.main import main

sys.exit(main())
