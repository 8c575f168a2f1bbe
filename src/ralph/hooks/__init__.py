"""What the agent's host calls: standard library only, and quick, since each call starts anew."""
