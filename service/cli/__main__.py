"""`python -m service.cli` is `litehit`."""

import sys

from service.cli import main

sys.exit(main())
