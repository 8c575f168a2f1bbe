"""Agents, or settings, compared over a suite of tasks: each trial is an ordinary run in a fresh
checkout, and the host's check is the truth. Public: `suite`, `conduct`, `standings`, `page`."""
