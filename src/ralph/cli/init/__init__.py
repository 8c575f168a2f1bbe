"""`ralph init`: `command` looks and writes, `questions` asks, `shown` says what was found and what
to type next."""
