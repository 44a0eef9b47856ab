"""Runs that nobody starts: schedules and polls, and the scheduler that looks after them (spec 1.2, Triggers)."""
