"""Explains steps of the ledger in words: captions, receipts (sums line by line) and reasons.
Callers decide how to display them.
"""
