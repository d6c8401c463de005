"""`python -m tooltrail`: the same as the `tooltrail` command."""

import sys

from tooltrail.commands import main

sys.exit(main())
