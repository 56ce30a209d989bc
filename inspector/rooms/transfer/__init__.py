"""Transfer: conversations from files, and into files."""
