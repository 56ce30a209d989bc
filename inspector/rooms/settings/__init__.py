"""Pages for settings: the policy and labels of a conversation, default policies, and API tokens.
The kernel stores them and checks their rules.
"""
