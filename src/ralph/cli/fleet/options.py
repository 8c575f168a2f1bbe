"""Options of several commands of `ralph fleet`, and the settings behind them."""

from ralph.cli.params import current_directory, option
from ralph.settings.load import load
from ralph.settings.schema import FleetSettings

tls = option(
    "--tls DIR",
    "The directory with ca.pem, cert.pem and key.pem.  [default: fleet.tls, else "
    "~/.config/ralph/fleet]",
)
fleet = option(
    "--fleet ADDRESS", "The fleet's scheduler.  [default: the setting fleet.address]", "address"
)


def settings() -> FleetSettings:
    """The settings of this directory about fleets."""
    return load(current_directory()).settings.fleet
