"""`python -m ravine`."""

import sys

from ravine.cli import main

sys.exit(main())
