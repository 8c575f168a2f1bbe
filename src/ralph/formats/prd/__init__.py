"""Lists of user stories in JSON. Public: `format`, `stories`, `criteria`."""
