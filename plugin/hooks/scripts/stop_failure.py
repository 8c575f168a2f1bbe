"""StopFailure: tells a loop that its turn failed (`ralph hook stop-failure`)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # not there under -I

from launch import launch

if __name__ == "__main__":
    sys.exit(launch("stop_failure"))
