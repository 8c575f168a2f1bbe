"""Settings: read from two files and the flags, merged, checked, explained (H §Settings File)."""
