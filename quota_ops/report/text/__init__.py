"""Reports, screens and progress as text: plain, and in color on a terminal."""
