"""What outsiders test their agents with. Public: `fakes`, `scripted_agent`."""
