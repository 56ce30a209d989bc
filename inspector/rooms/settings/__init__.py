"""Settings: the policy and labels of a conversation, default policies, and tokens of the API.

The kernel stores them and checks their rules. This room has their pages.
"""
