"""The lab: which window is worth its cost, for many conversations and for groups of them."""
