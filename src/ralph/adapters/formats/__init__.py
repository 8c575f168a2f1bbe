"""Other people's task lists: one module for each format, read and written without loss."""
