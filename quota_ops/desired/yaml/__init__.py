"""YAML as text with positions: files, nodes, scalars and mappings, and their problems."""
