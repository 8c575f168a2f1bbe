"""What exports must look like, read strictly, and runs on disk to be exported."""
