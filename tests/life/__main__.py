"""`python -m life`: stories composed at random."""

import sys

from life.composed import main

sys.exit(main())
