"""Ralph's own agent: a model, five actions and a loop, with no agent's CLI installed (B §Actions).

Public: `loop`, `service`, `actions`. The protocols of the services are modules in `protocols`.
"""
