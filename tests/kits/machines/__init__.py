"""Machines for tests: hosts on a switch, in namespaces of the test's own, and a log of who lives.

Public: `network` (the machines), `life` (the log), `checking` (what must hold of it), `agent.py`
(the program that they run as their agent).
"""
