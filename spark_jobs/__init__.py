"""The jobs that spark-submit runs; they are part of the installed wheel."""
