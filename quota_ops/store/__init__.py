"""Everything that is kept between runs: run folders, ledgers, holds, decisions."""
