"""Everything that outlives a command: runs, ledgers, holds, decisions, history, use."""
