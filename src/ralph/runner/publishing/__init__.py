"""Work goes where people review it: pushed, as a pull request, and complete when CI is green.

Public: `settle.Publication` and `setup`, which joins it to the plan of a run.
"""
