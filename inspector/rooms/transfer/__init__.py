"""Imports conversations from files, and exports conversations into files."""
