"""What Ralph costs, measured beside a bare bash loop in one run: `make bench`.

Standard library only, and nothing of Ralph: it measures commands, as a user would.
"""
