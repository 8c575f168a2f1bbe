"""Ralph runs AI coding agents in a loop until the work is done, and proves that it is done."""

__version__ = "0.1.0"
