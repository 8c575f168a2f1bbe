"""Issues of GitHub, as `gh` prints them. Public: `format`, `fields`, `write`."""
