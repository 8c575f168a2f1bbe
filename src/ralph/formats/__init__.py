"""Reads and writes other tools' task lists, one package or module each.

Public: `catalog`, `base`, `records`.
"""
