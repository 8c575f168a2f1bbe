"""`ralph prd init` and `archive` from this clone, by any Python from 3.11 on, nothing installed."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "src"))

from ralph.cli.prd.stdlib_main import main  # noqa: E402  it lies there

sys.exit(main(sys.argv[1:], os.environ))
