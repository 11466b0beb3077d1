"""`python -m quota_ops` is the command `quota-ops`."""

from quota_ops.cli import main

main(prog_name="quota-ops")
