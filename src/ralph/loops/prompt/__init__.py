"""H: one prompt, guardrails, and completion by a `<response>` tag."""
