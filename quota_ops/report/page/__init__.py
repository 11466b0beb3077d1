"""Reports and the overview of all clusters as HTML pages, with their templates."""
