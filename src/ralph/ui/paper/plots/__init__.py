"""Plots as SVG of our own: a function from a recap to a `Plot`, or to None where there is nothing
to see. Colours are classes, which style.css gives their values, light and dark.
"""
