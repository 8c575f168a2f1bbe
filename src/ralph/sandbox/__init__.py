"""Runs things in a place that can be undone.

Public: `catalog`, `interface`, `names`, `network`, `policy`, `run_layers`, `layer_store`, `kept`,
`library`, `profile`, `credentials`, `tools`.
"""
