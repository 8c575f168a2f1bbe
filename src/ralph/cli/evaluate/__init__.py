"""`ralph eval`: its flags, and what it tells while it goes on."""
