"""Programs with fewer rights than root has, and with file systems of their own."""

import os
import shutil
import subprocess

import pytest


def works(*command: str) -> bool:
    found = shutil.which(command[0]) is not None
    return found and subprocess.run(command, capture_output=True, check=False).returncode == 0


NAMESPACE = ("unshare", "--map-root-user", "--mount")
CAN_MOUNT = works(*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt")
needs_mount = pytest.mark.skipif(
    not CAN_MOUNT, reason="a tiny disk needs a mount namespace, which is not allowed here"
)
# Root may write everywhere, unless it gives up just that.
AS_ORDINARY_USER = (
    ()
    if os.geteuid()
    else (
        *("setpriv", "--bounding-set=-dac_override,-dac_read_search"),
        "--inh-caps=-dac_override,-dac_read_search",
    )
)
needs_ordinary_user = pytest.mark.skipif(
    not works(*AS_ORDINARY_USER, "true"),
    reason="root may write everywhere, and setpriv is not there to change that",
)
