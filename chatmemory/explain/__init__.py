"""Explanations of the ledger: captions, receipts and reasons, independent of their display."""
