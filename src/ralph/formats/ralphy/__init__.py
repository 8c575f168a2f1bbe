"""Task lists of ralphy, in JSON or YAML. Public: `format`, `fields`, `write`, `yaml_edit`."""
