"""The lab: advice about windows that are worth their cost, for many conversations and groups."""
