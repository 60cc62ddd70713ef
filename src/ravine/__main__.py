"""`python -m ravine`."""

import sys

from ravine.cli.arguments import main

sys.exit(main())
