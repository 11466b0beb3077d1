"""Everything that outlives a command: run folders, ledgers, holds, decisions."""
