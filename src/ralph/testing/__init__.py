"""What stands in for the world in tests and in `ralph demo`: fakes, a scripted agent and model."""
