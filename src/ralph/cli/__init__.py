"""The command line: click and nothing else, one module or package a command.

Public: `main`, `commands`, `params`, `ending`.
"""
