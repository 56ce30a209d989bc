"""Transfer: imports of conversations from files, and exports into files."""
