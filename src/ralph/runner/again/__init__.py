"""A stored run judged again by today's rules: `judged`, its `words`, and `told` at any speed."""
