"""Tells people and programs that a run ended or asks. Public: `notifier`, `message`."""
