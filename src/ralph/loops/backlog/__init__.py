"""B: works through the tasks of `.ralph/tasks.jsonl`, one at a time or several at once."""
