"""Settings: the policy and labels of a conversation, default policies, and tokens of the API.

The kernel stores them and holds their rules; here are their pages.
"""
