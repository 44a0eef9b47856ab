"""What would stop a run, found before it runs (engine semantics 17.5). Names variables and never tells a value."""
