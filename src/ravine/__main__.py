"""`python -m ravine`."""

import sys

from ravine.cli.main import main

sys.exit(main())
