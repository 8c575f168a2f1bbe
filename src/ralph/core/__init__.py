"""Pure values and decisions. Standard library only; no clock, file, process or environment."""
