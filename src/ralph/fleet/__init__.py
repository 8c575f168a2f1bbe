"""Turns on other machines: what an attempt is, how it travels, who dispatches it, and what a
machine does with it. The judgement stays where the run is (ADR 47).
"""
