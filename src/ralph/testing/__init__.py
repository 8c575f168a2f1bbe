"""Fakes, and a scripted agent, for outsiders who test agents. Public: `fakes`, `scripted_agent`."""
