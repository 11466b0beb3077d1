"""What spark-submit runs; found inside the installed wheel."""
