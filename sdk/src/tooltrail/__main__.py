"""`python -m tooltrail`: the same as the `tooltrail` command."""

import sys

from tooltrail.cli.main import main

sys.exit(main())
