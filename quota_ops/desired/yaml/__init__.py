"""YAML as text with positions: files, nodes, scalars, mappings and their problems."""
