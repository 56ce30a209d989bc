"""Explains steps of the ledger in words: captions, receipts (sums line by line) and reasons. How
they are displayed is up to the callers.
"""
