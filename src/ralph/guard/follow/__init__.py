"""Follows a script through variables, wrappers, loops and inline code.

Public: `script`, `state`.
"""
