"""Memories in the frameworks of agents; each module needs the framework that it is named after."""
