"""Commands about runs: status, logs, stop, pause, resume. Public: `status`, `logs`, `steer`."""
