"""The parts of a report, and the words that every output shares."""
