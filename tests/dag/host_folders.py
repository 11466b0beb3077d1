"""Where the hosts of tests.dag.hosts are, for tests that do not import Airflow."""

HOSTS = "TESTS_HOSTS"
"""The variable with the folder of all hosts; a host is a folder in it."""
INSTALLED = "TESTS_INSTALLED"
"""The variable with the folder of an installation of quota-ops; each host has it at its path."""
KILLED = "kill-apply"
"""A file among the hosts: the next that applies deletes it, and dies during its first write."""
