"""The whole screen, by Textual (extra `watch`). Public: `main`."""
