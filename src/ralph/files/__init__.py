"""Writes files safely: atomic writes, append-only logs, the state directory.

Public: `state_dir`, `safe_open`, `append`, `jsonl`, `digest`, `json_edit`, `yaml_text`, `touched`.
"""
