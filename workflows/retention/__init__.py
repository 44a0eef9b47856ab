"""How long what has ended is kept, and its end (docs/operations.md, *Retention*)."""
