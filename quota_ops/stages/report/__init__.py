"""report: render the artifacts of a run for people, even after a stage has failed."""
