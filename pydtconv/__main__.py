"""`python -m pydtconv` is the `pydtconv` command."""

import sys

from pydtconv.cli import main

sys.exit(main())
