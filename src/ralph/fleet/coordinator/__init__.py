"""The run's side of turns on other machines."""
